"""The jobs that ``compare_outputs.py`` runs: commands as a person types them.

A job has a folder of its own with ``inputs`` (see ``inputs.py``) and ``checkout`` in it, and a
``$SOTTOVOCE_HOME`` of its own with the installed resources and the word space ``small``. Only the
command line, the service and names of the package ``sottovoce`` itself are used: modules may move.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field

from recorded.inputs import ODD_LINES, QUERY, QUERY_LINES


@dataclass(frozen=True)
class Call:
    """One command of sottovoce, or of a module of this package: ``recorded.NAME ...``."""

    command: str
    stdin: bytes = b""
    save: str | None = None
    """A file of the job's folder that gets the output, for the calls after this one."""
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def arguments(self) -> list[str]:
        """The command, cut as a shell would."""
        return shlex.split(self.command)

    @property
    def is_module(self) -> bool:
        """Whether it is a module of this package."""
        return self.command.startswith("recorded.")


@dataclass(frozen=True)
class Job:
    """Calls that are made one after the other in one folder; its name is ``group/name``."""

    name: str
    calls: tuple[Call, ...]


def _job(name: str, *calls: str | Call) -> Job:
    return Job(name, tuple(call if isinstance(call, Call) else Call(call) for call in calls))


def _both(command: str) -> tuple[str, str]:
    """The output for people, and for programs."""
    return command, f"{command} --json"


EMPTY_HOME = {"SOTTOVOCE_HOME": "empty-home"}
SMALL = "--space small"
SEEDED = "--seed 7 -o jsonl"

# Each mechanism: epsilons, whether it can release 'once', other parameters, what else it needs.
NOISE = {
    "cmp": ("1 4", []),
    "mahalanobis": ("1 4", ["--set lambda=0.75", "--set compat=pypantera"]),
    "vickrey-cmp": (
        "1 4",
        ["--set t=0.25", "--set weights=0.2/0.5/0.3", "--set law=exponential --set weights=1/2"],
    ),
    "vickrey-mahalanobis": ("1 4", ["--set t=0.5 --set lambda=1"]),
}
SAMPLING = {
    "santext": ("0.5 3", ["--set sensitive=0.5 --set p=0.3"]),
    "tem": ("0.5 3", ["--set beta=0.1", "--set gamma=1.5"]),
    "custext": ("0.5 8", ["--set k=5 --set measure=angle", "--set keep_stop_words=true",
                          "--set compat=knn"]),
    "wbb": ("1 20", ["--set measure=product --set k=2 --set n=10 --protect all",
                     "--set compat=repo --set measure=euclidean"]),
}  # fmt: skip
WHOLE_TEXTS = {
    "aea": ("", ["--set level=1 --set senses=first", "--set threshold=0.5 --set cap=20"]),
    "fea": ("--corpus inputs/articles/corpus.jsonl",
            ["--set window=4 --set terms=2", "--set targets=1"]),
    "comet-cmp": ("--pool inputs/log.txt --encoder light", ["-e 1", "-e 30 --release once",
                  "--set compat=authors"]),
    "comet-mahalanobis": ("--pool inputs/pool.jsonl --encoder light", ["-e 1 --release once",
                          "-e 30", "--set lambda=0.2"]),
}  # fmt: skip


def _odd(command: str) -> Call:
    return Call(f"obfuscate - {command}", ODD_LINES)


def _obfuscate_words(name: str, epsilons: str, settings: list[str], once: bool) -> Job:
    """Default and small space, several epsilons, parameters, and both releases if there are two."""
    calls = [_odd(f"-m {name} -n 4 {SEEDED}")]
    calls += [_odd(f"-m {name} -e {epsilon} -n 2 {SMALL} {SEEDED}") for epsilon in epsilons.split()]
    calls += [_odd(f"-m {name} -n 2 {SMALL} {SEEDED} {setting}") for setting in settings]
    if once:
        calls += [_odd(f"-m {name} -n 20 --release once {SEEDED}")]
        calls += [_odd(f"-m {name} -e 2 -n 3 --release once {SMALL} {SEEDED}")]
    return _job(f"obfuscate/{name}", *calls)


def _obfuscate_whole(name: str, needs: str, settings: list[str]) -> Job:
    calls = [_odd(f"-m {name} {needs} -n 3 {SEEDED}")]
    calls += [_odd(f"-m {name} {needs} -n 5 {SEEDED} {setting}") for setting in settings]
    return _job(f"obfuscate/{name}", *calls)


OBFUSCATE = (
    *(_obfuscate_words(name, *how, once=True) for name, how in NOISE.items()),
    *(_obfuscate_words(name, *how, once=False) for name, how in SAMPLING.items()),
    *(_obfuscate_whole(name, *how) for name, how in WHOLE_TEXTS.items()),
    _job(
        "obfuscate/options",
        _odd(f"{SMALL} -n 2 --seed 1"),
        *(_odd(f"{SMALL} {SEEDED} --unknown {policy}") for policy in ("drop", "keep", "error")),
        *(
            _odd(f"{SMALL} {SEEDED} --protect {words}")
            for words in ("content", "noun,adjective", "NN,VB")
        ),
        _odd(f"{SMALL} {SEEDED} --keep skin --keep Cancer"),
        _odd(f"{SMALL} {SEEDED} --restore-case --drop-punctuation"),
        *(
            _odd(f"{SMALL} {SEEDED} --output-vocabulary {words}")
            for words in ("clean", "dictionary", "language:de", "file:inputs/words.txt")
        ),
        _odd("-e 5 --seed 3 -o jsonl --protect noun,adjective --restore-case --unknown drop"),
    ),
    _job(
        "obfuscate/ways",
        f"obfuscate '{QUERY}' '' 'Skin!' {SMALL} -n 3 {SEEDED}",
        f"obfuscate '{QUERY}' -e 100000 --seed 1",
        f"obfuscate '{QUERY}' -m comet-cmp --pool demo --encoder light -n 4 --seed 1",
        f"obfuscate '{QUERY}' -m comet-cmp:epsilon=9 --pool inputs/articles --encoder strong "
        f"-n 4 {SEEDED}",
        Call(f"obfuscate - {SMALL} --workers 2 -n 2 {SEEDED}", ODD_LINES * 20),
        Call(f"obfuscate - {SMALL} {SEEDED}"),
    ),
)

SEARCHED = f"search '{QUERY}' --seed 5 -n 6"
ARTICLES = "--collection inputs/articles --no-ledger"
SEARCH = (
    _job("search/default", *_both(f"{SEARCHED} --rerank light"), "ledger show --last 1"),
    _job(
        "search/pooling",
        *(f"{SEARCHED} --pooling {method} --rerank none --depth 8 --top 12 --json --no-ledger"
          for method in ("union", "rrf", "combsum")),
        f"{SEARCHED} --pooling rrf --rerank bm25 --no-ledger",
    ),
    _job(
        "search/engines",
        f"{SEARCHED} --engine tfidf --rerank none --no-ledger --json",
        f"{SEARCHED} --engine dense:light --rerank bm25 --pooling combsum --no-ledger --json",
    ),
    _job(
        "search/strong",
        *(f"{SEARCHED} {SMALL} {ARTICLES} --json {options}" for options in (
            "--engine dense --rerank auto", "--engine dense:strong --rerank light",
            "--engine bm25 --rerank strong --depth 3",
        )),
    ),
    _job(
        "search/mechanisms",
        *(f"{SEARCHED} {ARTICLES} --rerank none {options}" for options in (
            f"-m vickrey-cmp:t=0.5 -e 2 --release independent {SMALL} --json",
            f"-m santext {SMALL} --json", f"-m wbb {SMALL} --protect all",
            "-m aea", "-m fea --corpus inputs/articles/corpus.jsonl --json",
            "-m comet-cmp --pool inputs/log.txt --encoder light",
        )),
        Call(f"search - {SMALL} {ARTICLES} --rerank none --json --seed 1", QUERY_LINES),
        f"search '?!' {SMALL} {ARTICLES} --rerank none -n 2",
        f"search skin {SMALL} -e 100000 -n 1 {ARTICLES} --rerank none",
    ),
    _job("search/servers", "recorded.servers"),
)  # fmt: skip

CHARGED = f"obfuscate '{QUERY}' {SMALL} --ledger"
LEDGER = (
    _job(
        "ledger/commands",
        *_both("ledger show"),
        "ledger check",
        "ledger budget",
        f"{CHARGED} -e 5 --seed 1",
        f"{CHARGED} -e 2 -n 3 -m mahalanobis --seed 1 --keep skin",
        f"obfuscate 'the divorce zzyzx' {SMALL} --ledger -m wbb --seed 1",
        f"obfuscate 'divorce' --ledger -m cmp --release once -n 2 {SEEDED}",
        f"obfuscate '{QUERY}' -m comet-cmp --pool inputs/log.txt --encoder light --ledger --seed 1",
        *_both("ledger show"),
        f"ledger show --text '{QUERY}' --json",
        Call("ledger show --text - --last 2", b"  Treatment FOR skin cancer\n"),
        "ledger show --text nothing",
        "ledger budget --per-text 12",
        "ledger budget --total 50",
        f"{CHARGED} -e 8 --seed 1",
        f"{CHARGED} -m wbb --seed 1",
        "ledger check",
        Call("ledger reset", b"no\n"),
        Call("ledger reset", b"yes\n"),
        "ledger show",
        "ledger budget --none",
        "ledger reset --yes",
    ),
    _job(
        "ledger/remembered",
        # So large an epsilon that every draw is the same: the key of a ledger is random.
        *(f"search {query} {SMALL} -e 100000 -n 1 --collection inputs/articles --rerank none "
          "--json" for query in ("skin", "SKIN")),
        "ledger show --json",
        "ledger show",
    ),
)  # fmt: skip

SETUP = (
    _job(
        "mechanisms/all",
        *_both("mechanisms"),
        f"mechanisms --json {SMALL}",
        Call("mechanisms", environment=EMPTY_HOME),
    ),
    _job(
        "mechanisms/one-by-one",
        *(f"mechanisms {name}" for name in (*NOISE, *SAMPLING, *WHOLE_TEXTS)),
        *_both("mechanisms mahalanobis:compat=pypantera,epsilon=3"),
        f"mechanisms tem:beta=0.01 --json {SMALL}",
    ),
    _job("spaces/list", *_both("spaces list"), Call("spaces list --json", environment=EMPTY_HOME)),
    _job(
        "spaces/info",
        *_both("spaces info"),
        *_both("spaces info wordnet"),
        *_both("spaces info strong"),
        *_both("spaces info small --output-vocabulary dictionary "
               "--output-vocabulary file:inputs/words.txt"),
        Call("spaces info wordnet", environment=EMPTY_HOME),
        "spaces add default strong",
    ),
    _job(
        "spaces/import",
        "spaces import inputs/small.txt --name other",
        "spaces import inputs/small.txt --name other --format glove --replace",
        "spaces import inputs/small.txt.gz --name gzipped",
        *(f"spaces import inputs/small.{kind} --name {kind}" for kind in ("vec", "bin", "npz")),
        "spaces import inputs/faulty.txt",
        *(f"spaces info {name} --json" for name in ("other", "vec", "bin", "npz", "faulty")),
        "spaces list --json",
    ),
)  # fmt: skip

ATTACKED = f"attack released.jsonl {SMALL} --seed 1"
LAB = (
    _job(
        "attack/words",
        Call(f"obfuscate - {SMALL} -e 3 -n 6 {SEEDED}", QUERY_LINES, save="released.jsonl"),
        *_both(f"{ATTACKED} -n 1 -n 6"),
        f"{ATTACKED} --log inputs/log.txt --encoder light --prior log --figure risk.svg",
        f"{ATTACKED} --log inputs/log.txt --encoder light --prior uniform --json",
        Call(f"obfuscate - {SMALL} -m wbb -n 6 {SEEDED}", QUERY_LINES, save="released.jsonl"),
        f"{ATTACKED} --json",
        f"{ATTACKED} -m cmp:epsilon=2",
        "attack inputs/theirs.csv --seed 1 --json",
    ),
    _job(
        "attack/once",
        Call("obfuscate - -n 20 --release once --seed 7 -o jsonl", QUERY_LINES[:45],
             save="released.jsonl"),
        "attack released.jsonl --log demo --add-originals --encoder light --seed 1 --json",
    ),
    _job(
        "attack/whole-texts",
        Call(f"obfuscate - -m comet-cmp --pool inputs/log.txt --encoder light -n 5 {SEEDED}",
             QUERY_LINES, save="released.jsonl"),
        "attack released.jsonl --pool inputs/log.txt --pool-encoder light --log inputs/log.txt "
        "--encoder strong --engine-encoder light --seed 1 --figure risk.png",
        "attack released.jsonl --log inputs/log.txt --encoder light",
    ),
    _job(
        "audit/small",
        *_both(f"audit cmp -e 2 --quick --seed 1 {SMALL} --draws 1000 --words 4"),
        *(f"audit {name} --quick --seed 1 --json {SMALL} --draws 1000 --words 4"
          for name in (*NOISE, *SAMPLING)[1:]),
        f"audit wbb --quick --seed 1 {SMALL} --fail --figure ratios.png",
        f"audit mahalanobis --set compat=pypantera --quick --seed 1 {SMALL} --draws 1000 --words 4",
    ),
    _job(
        "audit/more",
        *_both(f"audit santext -e 1 --seed 1 {SMALL} --figure ratios.svg"),
        "audit aea --quick --seed 1 --words 4",
        "audit fea --quick --seed 1 --json --words 4 --corpus inputs/articles/corpus.jsonl",
        "audit comet-cmp --quick --seed 1 --json --pool inputs/log.txt --encoder light",
        "audit santext --quick --seed 1 --words 20 --json",
    ),
    _job(
        "deniability/all",
        *_both(f"deniability cmp -e 1 -e 3 --words 20 --draws 200 --seed 1 {SMALL}"),
        *(f"deniability {name} --words 10 --draws 100 --seed 1 --json {SMALL}"
          for name in (*NOISE, *SAMPLING)[1:]),
        f"deniability tem --words inputs/words.txt {SMALL} --eta 0.1 --figure words.svg",
        "deniability cmp --words 5 --draws 50 --seed 1 --json",
    ),
    _job(
        "calibrate/all",
        *_both(f"calibrate cmp --max-unchanged 0.3 --words 6 --draws 150 --seed 1 {SMALL}"),
        *_both(f"calibrate santext --max-unchanged 0.3 --min-support 4 --words 9 --seed 1 {SMALL}"),
        f"calibrate wbb --min-support 5 --set n=10 --words inputs/words.txt --no-cost {SMALL}",
        "calibrate santext --max-unchanged 0.1 --words 5 --no-cost --json",
    ),
    _job(
        "similarity/all",
        Call(f"obfuscate - {SMALL} -e 1 -n 3 {SEEDED}", QUERY_LINES, save="one.jsonl"),
        Call(f"obfuscate - {SMALL} -e 4 -n 3 {SEEDED}", QUERY_LINES, save="four.jsonl"),
        *_both("similarity four.jsonl one.jsonl inputs/theirs.csv --encoder light"),
        "similarity one.jsonl -m jaccard -m bleu --json --per-query --keep-case",
        "similarity one.jsonl four.jsonl -m jaccard --encoder none --figure lines.svg",
        "similarity one.jsonl -m semantic --encoder strong --figure histogram.png",
    ),
    _job(
        "quipu/all",
        *_both("quipu inputs/measured.csv --best 0.7 --descending aea"),
        "quipu inputs/measured.csv --samples 100 --seed 3 --json --figure plane.svg",
        Call("quipu -", b"system,parameter,risk,utility\ncmp,low,0.1,0.3\ncmp,high,0.6,0.5\n"),
    ),
    _job(
        "membership/all",
        *_both(f"membership inputs/users.csv -m cmp -e 1,5 {SMALL} --members 4 --shadows 2 "
               "--repeats 2 --min-queries 10 --seed 1 --figure auc.svg"),
        "membership inputs/users.csv --members 5 --shadows 1 --repeats 1 --min-queries 10 --seed 2",
    ),
    _job(
        "downstream/classify",
        *_both(f"downstream inputs/reviews.csv -m cmp -m santext -e 1,50 {SMALL} --seeds 2 "
               "--csv scores.csv --figure scores.svg"),
        f"downstream inputs/reviews.csv -e 3 {SMALL} --model svm --model embeddings "
        "--seeds 1 --limit 40 --json",
        f"downstream inputs/reviews.csv -e 3 {SMALL} --model bilstm --seeds 1 --limit 40",
        f"downstream inputs/reviews.csv --test inputs/reviews.csv -e 3 {SMALL} --seeds 1",
    ),
    _job(
        "downstream/rank",
        *_both(f"downstream inputs/questions.jsonl -e 1,50 {SMALL} --seeds 2"),
        f"downstream inputs/questions.jsonl -e 9 {SMALL} --model embeddings --encoder light --json",
        "downstream inputs/questions.jsonl -m comet-cmp --pool inputs/log.txt -e 9 --encoder light "
        "--model embeddings --json",
    ),
)  # fmt: skip

SANITIZED = f"{SMALL} --seed 4 -e 1"
SANITIZE = (
    _job(
        "sanitize/formats",
        f"sanitize inputs/rows.csv out.csv --column text {SANITIZED} --report report.json",
        f"sanitize inputs/rows.csv two.csv --column text --column note {SANITIZED} --json",
        f"sanitize inputs/rows.csv.gz out.csv.gz --column text {SANITIZED} --workers 2",
        f"sanitize inputs/rows.tsv out.tsv --column text --delimiter '\t' --format csv {SANITIZED}",
        f"sanitize inputs/rows.jsonl out.jsonl --column text {SANITIZED}",
        f"sanitize inputs/rows.parquet out.parquet --column text {SANITIZED} --json",
    ),
    _job(
        "sanitize/options",
        *(f"sanitize inputs/rows.csv out.csv --overwrite --column text {SANITIZED} --json {options}"
          for options in ("--deny file:inputs/names.txt --deny cancer --keep file:inputs/keep.txt",
                       "--unknown drop --protect noun,adjective --no-restore-case",
                       "--unknown keep --drop-punctuation --output-vocabulary clean",
                       "--linkable -m santext")),
        f"sanitize inputs/rows.csv linked.csv --column text {SMALL} -e 1 --linkable "
        "--key-file inputs/key",
        "sanitize inputs/rows.csv aea.csv --column text -m aea --seed 1",
        "sanitize inputs/rows.csv comet.csv --column text -m comet-cmp --pool inputs/log.txt "
        "--encoder light --seed 1 --json",
        "sanitize inputs/rows.csv default.csv --column text --seed 1",
    ),
    _job(
        "sanitize/dask",
        f"sanitize inputs/rows.csv out.csv --column text {SANITIZED} --on dask --workers 2 --json",
    ),
)  # fmt: skip

SMALL_RUN = "experiment run inputs/small.toml --data inputs"
EXPERIMENTS = (
    _job(
        "experiment/demo",
        "experiment run checkout/examples/demo-experiment.toml --dry-run",
        "experiment run checkout/examples/demo-experiment.toml --out demo",
        "experiment report demo --no-figures",
    ),
    _job(
        "experiment/small",
        *_both(f"{SMALL_RUN} --dry-run"),
        f"{SMALL_RUN} --out out --workers 2",
        f"{SMALL_RUN} --out out --json",
        *_both("experiment check out"),
        "experiment check out --against inputs/expectations.toml",
        "experiment report out",
        "experiment report out --no-figures --json",
    ),
)

SERVICE = (
    _job("service/answers", "recorded.service answers"),
    _job("service/page", "recorded.service page"),
    _job("service/incomplete", Call("recorded.service incomplete", environment=EMPTY_HOME)),
)

API = (
    _job("api/signatures", "recorded.public_api signatures"),
    _job("api/calls", "recorded.public_api calls"),
)

COMMANDS = {
    "search": (), "obfuscate": (), "sanitize": (), "serve": (), "attack": (), "audit": (),
    "deniability": (), "calibrate": (), "similarity": (), "quipu": (), "membership": (),
    "downstream": (), "mechanisms": (),
    "experiment": ("run", "report", "check"),
    "spaces": ("list", "add", "import", "info"),
    "ledger": ("show", "budget", "check", "reset"),
}  # fmt: skip

HELP = (
    _job("help/sottovoce", "--help", "-h", "", "--version"),
    *(
        _job(f"help/{name}", f"{name} --help", *(f"{name} {command} --help" for command in within))
        for name, within in COMMANDS.items()
    ),
)

# Wrong calls; each begins with its command. 'secretword' must not come back in any complaint.
WRONG = {
    "sottovoce": ("obfuscat", "secretword cancer", "--secretword", "spaces secretword"),
    "obfuscate": (
        "", "- skin", "skin -m vikrey", "skin -m secretword", "skin -e -3", "skin -e secretword",
        "skin -e nan", "skin --set t", "skin --set t=1", "skin --set epsilon=secretword",
        "skin -n 0", f"skin -n 9999 --release once {SMALL}", "skin -m santext --release once",
        "skin --unknown ignore", "skin --seed -1", "skin --output-vocabulary nice",
        "skin --output-vocabulary file:secretword", "skin --protect secretword",
        "skin --keep 'two words'", "skin --space nowhere", "skin --workers 0", "skin -m fea",
        "skin -m comet-cmp", "skin -m comet-cmp --pool secretword", "skin -m cmp --pool demo",
        "skin -m aea --space small", "skin -m comet-cmp --pool demo --encoder light --keep skin",
        "skin -m custext:k=1", "skin -m mahalanobis:lambda=2", "skin -m vickrey-cmp:t=7",
        "skin -m wbb:k=0", "skin -m tem:beta=2", "skin -m aea:level=99", f"skin {SMALL} -o xml",
        "skin -m fea --corpus secretword", f"'zzyzx secretword skin' {SMALL} --unknown error",
    ),
    "search": (
        "", "'  '", "x --engine bm52", "x --collection nowhere", "x --engine http:nowhere.toml",
        "x --engine http://example.org", "x --engine opensearch:secretword",
        "x --engine postgres:secretword", "x -m cnp", "x -m santext --release once",
        f"x --rerank bm52 {SMALL}", "x -n 0", f"x --depth 0 {SMALL} --rerank none",
        f"x --top 0 {SMALL} --rerank none", "x --space nowhere", "x --pooling secretword",
        "x --release remembered", "x y",
    ),
    "ledger": (
        "", "check", "reset --yes", "budget --none --total 5", "budget --total -5",
        "budget --total secretword", "show --last -1", "show secretword",
    ),
    "spaces": (
        "", "info nowhere", "info secretword --json", "add default lagre", "add", "add secretword",
        "add default large --archive a.whl", "import nowhere",
        "import inputs/words.txt", "import inputs/twice.txt", "import inputs/short.txt",
        "import inputs/small.txt --format excel --name other",
        "import inputs/small.txt --format word2vec --name other", "list secretword",
        "import inputs/small.txt --name small", "import inputs/small.txt --name ../small",
    ),
    "mechanisms": ("cpm", "cmp:epsilon=0", "cmp:secretword=1", "cmp secretword",
                   "cmp --space nowhere"),
    "attack": (
        "", "secretword", "inputs/words.txt", "inputs/theirs.csv -m cmpp",
        "inputs/theirs.csv -m cmp:epsilon=0", "inputs/theirs.csv -n 0",
        f"inputs/theirs.csv -m santext --release once {SMALL}", "inputs/theirs.csv --encoder light",
        "inputs/theirs.csv --log demo --add-originals --encoder secretmodel",
        "inputs/theirs.csv --figure risk.pdf", "inputs/theirs.csv --log nowhere.txt",
        "inputs/theirs.csv --log inputs/words.txt --encoder light",
        "inputs/theirs.csv --log demo --encoder light --engine-encoder light",
        "inputs/theirs.csv --engine-encoder light", "inputs/theirs.csv --prior log",
        "inputs/theirs.csv --prior secretword",
    ),
    "audit": ("", "cpm", "cmp -e 0", "cmp --draws 5", "cmp --words 1", "cmp --figure ratios.gif",
              "cmp --set nonsense", "fea", "comet-cmp", "cmp --space nowhere", "cmp --seed -1"),
    "deniability": ("", "aea", "fea", "none", "nosuch", "cmp -e 0", "cmp -e nan", "cmp --eta 2",
                    "cmp --words 0", "cmp --words no-such-file", "cmp --draws 0",
                    "cmp --figure picture.pdf", "cmp --seed -1"),
    "calibrate": ("", "cmp", "cmp --max-unchanged nan", "cmp --max-unchanged 1.5",
                  "cmp --max-unchanged often", "cmp --min-support 0",
                  "cmp --max-unchanged 0.1 --eta 1", "cmp:epsilon=-1 --max-unchanged 0.1",
                  f"cmp --max-unchanged 0.1 --draws 0 {SMALL}", f"wbb --min-support 300 {SMALL}",
                  "aea --min-support 300", "nosuch --min-support 300"),
    "similarity": ("", "secretword.csv", "inputs/words.txt", "inputs/theirs.csv inputs/rows.csv",
                   "inputs/theirs.csv -m secretword", "inputs/theirs.csv --encoder secretword",
                   "inputs/theirs.csv --figure out.gif"),
    "quipu": ("", "none.csv", "inputs/rows.csv", "inputs/measured.csv --best 2",
              "inputs/measured.csv --descending secretsystem",
              "inputs/measured.csv --figure plane.pdf", "inputs/measured.csv --samples 0",
              "inputs/measured.csv --seed -1"),
    "membership": ("", "nowhere.csv", "inputs/rows.csv", "inputs/users.csv -e 5",
                   "inputs/users.csv -m cmp -e secret", "inputs/users.csv -m cmp -e 0",
                   "inputs/users.csv -m nonsense -e 5", "inputs/users.csv --figure auc.svg",
                   "inputs/users.csv -m cmp --figure auc.pdf", "inputs/users.csv --shadows 0",
                   "inputs/users.csv --members 1000",
                   "inputs/users.csv --members 3 --min-queries 10 --seed -1"),
    "downstream": ("", "nowhere.csv", "inputs/rows.csv", "inputs/reviews.csv -e many",
                   "inputs/reviews.csv --seeds 0", "inputs/reviews.csv --limit 0",
                   f"inputs/reviews.csv --model tfidff {SMALL}", "inputs/reviews.csv -m cmpp",
                   "inputs/reviews.csv -m comet-cmp", "inputs/reviews.csv --figure picture.pdf",
                   "inputs/reviews.csv --csv nowhere/at/all.csv", "inputs/reviews.csv -e -3",
                   "inputs/reviews.csv --test nowhere.csv"),
    "sanitize": (
        "", "inputs/rows.csv out.csv", "inputs/rows.csv out.csv --column secretword",
        "none.csv out.csv --column text", "inputs/rows.csv inputs/rows.csv --column text",
        *(f"inputs/rows.csv out.csv --column text {SMALL} {options}" for options in (
            "--key-file secretword", "--linkable --key-file secretword",
            "--linkable --key-file inputs/key --seed 1", "--linkable --key-file inputs/names.txt",
            "--deny file:secretword", "--deny 'skin secretword'", "--unknown error",
            "--format secretword", "--seed -1", "--workers 0", "--delimiter secretword",
            "--scheduler tcp://127.0.0.1:1", "--on spark", "--format parquet", "-m fea",
        )),
        f"inputs/ragged.csv out.csv --column text {SMALL}",
        f"inputs/rows.csv out.parquet --column text {SMALL}",
    ),
    "experiment": (
        "", "run", "run nowhere.toml", "run inputs/wrong.toml --out wrong --data inputs",
        "run inputs/small.toml --data inputs", "run inputs/words.txt --out out",
        "run inputs/small.toml --out out", "report nowhere", "check nowhere", "report inputs",
        "run inputs/small.toml --data inputs --out out --scheduler tcp://127.0.0.1:1",
        "run inputs/small.toml --data inputs --out out --workers 0",
        *(f"run checkout/replication/{name}.toml --dry-run --data inputs"
          for name in ("001-quipu", "004-comet")),
    ),
    "serve": (
        "--port 99999", "--port secretword", "--engine bm52 --port 0 --no-browser",
        "--collection nowhere --port 0 --no-browser", "--log nowhere --port 0 --no-browser",
        "--host 192.0.2.1 --port 0 --no-browser", "--depth 0", "secretword",
    ),
}  # fmt: skip


def _wrong(name: str, calls: tuple[str, ...]) -> Job:
    prefix = "" if name == "sottovoce" else f"{name} "
    return _job(f"errors/{name}", *(f"{prefix}{call}" for call in calls))


ERRORS = (
    *(_wrong(name, calls) for name, calls in WRONG.items()),
    _job(
        "errors/nothing-installed",
        *(Call(command, environment=EMPTY_HOME) for command in (
            "obfuscate skin", "obfuscate skin -m aea", "search skin", "spaces info",
            "audit cmp", "serve --port 0 --no-browser --rerank nothing --log nowhere",
            "similarity inputs/theirs.csv --encoder strong",
        )),
        Call("serve --port 0 --no-browser", environment={"SOTTOVOCE_TOKEN": "short"}),
    ),
)  # fmt: skip

# The longest first, so that two at a time end together.
JOBS = (
    *EXPERIMENTS,
    *SERVICE,
    *LAB,
    *OBFUSCATE,
    *SEARCH,
    *SANITIZE,
    *API,
    *ERRORS,
    *LEDGER,
    *SETUP,
    *HELP,
)
