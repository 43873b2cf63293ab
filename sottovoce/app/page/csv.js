/** Just enough CSV to name the columns of a file; the service reads the file itself. */

/** What stands between fields: what gives the first row most of them. */
export const delimiterOf = (text) =>
  [",", ";", "\t"].reduce((best, sign) => (header(text, sign).length > header(text, best).length ? sign : best));

/** The fields of the first row. */
export function header(text, delimiter) {
  const fields = [];
  let field = "";
  let quoted = false;
  for (let at = text.startsWith("\ufeff") ? 1 : 0; at < text.length; at += 1) {
    const sign = text[at];
    if (quoted) {
      if (sign !== '"') field += sign;
      else if (text[at + 1] === '"') field += text[(at += 1)];
      else quoted = false;
    } else if (sign === '"' && field === "") quoted = true;
    else if (sign === delimiter) {
      fields.push(field);
      field = "";
    } else if (sign === "\n" || sign === "\r") break;
    else field += sign;
  }
  return [...fields, field];
}
