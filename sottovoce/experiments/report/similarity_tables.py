"""How alike variants and originals are, by epsilon: the shape of WBB Table 1, DP-COMET Table 2."""

from __future__ import annotations

from collections.abc import Iterator

from sottovoce.experiments.report.naming import RowNames, last_part, slug
from sottovoce.experiments.report.places import sized
from sottovoce.experiments.report.spread import BOOTSTRAP_SAID, estimates
from sottovoce.experiments.report.strongest import measures_like
from sottovoce.experiments.report.table import Table, by_epsilon
from sottovoce.experiments.results import Results, curves

MEANING = {
    "jaccard": "Words in common over all words, as sets (Jaccard)",
    "semantic": "Cosine of the sentence vectors of variant and original",
    "bleu": "BLEU of variant and original",
    "meteor": "METEOR of variant and original",
}


def similarity_tables(results: Results, collection: str) -> Iterator[Table]:
    """A table for each measure of similarity."""
    for measure in measures_like(results, collection, *MEANING):
        grid = results.grid(measure, collection=collection)
        names, found = RowNames(grid.settings), estimates(grid, measure)
        columns, rows = by_epsilon(
            names.columns,
            (
                (names.of(curve), {each.epsilon: found.get(each) for each in points})
                for curve, points in curves(grid.settings).items()
            ),
        )
        yield Table(
            name=slug("similarity", measure, collection),
            title=f"Similarity: {measure}, {last_part(collection)}",
            caption=f"{MEANING[measure]}; mean over variants, then queries. "
            f"{sized(grid)}{names.shared}; {BOOTSTRAP_SAID}.",
            columns=columns,
            rows=rows,
            notes=("High means that the text is still there; low alone does not mean safe.",),
        )
