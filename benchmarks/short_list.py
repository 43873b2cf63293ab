"""What attackers who know the demo's subjects name: tables of docs/cover-measured.md.

    python benchmarks/short_list.py cover           sets with uniform and with sensitive decoys
    python benchmarks/short_list.py words 5 7.5 10  cmp as ``search`` sends it, at these epsilons

The short list has the queries and the five public strings nearest to each, without what stands
for them. Shares are means over seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from sottovoce import Obfuscator, defaults, load_space, mechanism
from sottovoce.collections import load_collection, load_judged_queries
from sottovoce.engines import BM25
from sottovoce.mechanisms.base import SetMechanism, WordMechanism
from sottovoce.output_vocabularies import of_search
from sottovoce.pools import load_pool
from sottovoce.privacy import Knowledge, QueryLog, Released, attack, attack_company
from sottovoce.privacy.attacks.company.run import strings_near
from sottovoce.search import laid_out_for
from sottovoce.text import TextPipeline

SEEDS = range(1, 6)
QUERIES = load_judged_queries("demo")


def cover() -> None:
    """Named and on its subject, by attack, for each encoder and kind of decoys."""
    texts = list(QUERIES.values())
    for encoder in ("light", "strong"):
        pool = load_pool("demo", encoder)
        short = [*strings_near(texts, pool), *texts]
        for name in ("cover", "cover-subjects"):
            for decoys in ("uniform", "sensitive"):
                made = mechanism(f"{name}:k=20,p=0.9,decoys={decoys}", pool=pool)
                assert isinstance(made, SetMechanism)
                shares: dict[str, list[tuple[float, float]]] = {}
                for seed in SEEDS:
                    results = Obfuscator(made, rng=seed).obfuscate(texts)
                    sets = [result.variants for result in results]
                    for listed, prefix in ((pool.strings, ""), (short, "short ")):
                        report = attack_company(
                            made, sets, texts, knowledge=Knowledge(listed=listed)
                        )
                        for naming in report.namings:
                            if not prefix or naming.attack.startswith("list"):
                                value = naming.group.value or 0.0, naming.subject.value or 0.0
                                shares.setdefault(prefix + naming.attack, []).append(value)
                    blind = report.chance, report.subject_chance
                    shares.setdefault("a blind guess", []).append(blind)
                print(f"\n{encoder}, {name}, {decoys} decoys: named, on its subject")
                for attack_name, values in shares.items():
                    named, on_subject = np.mean(values, axis=0)
                    print(f"  {attack_name:28} {named:.2f}  {on_subject:.2f}", flush=True)


def words(epsilons: Sequence[float]) -> None:
    """Named first in the demo's log and in the short list, by the strongest attack of a seed."""
    texts, documents = list(QUERIES.values()), load_collection("demo").documents
    space = load_space("default")
    space = space.with_output(of_search(space, documents, "demo"))
    near = strings_near(texts, load_pool("demo", "light"))
    for epsilon in epsilons:
        made = mechanism("cmp", space=space, epsilon=epsilon, prior=defaults.PRIOR)
        assert isinstance(made, WordMechanism)
        pipeline = laid_out_for(BM25(documents), TextPipeline(), made)
        named = []
        for seed in SEEDS:
            obfuscator = Obfuscator(
                made, n=defaults.VARIANTS, release="once", pipeline=pipeline, rng=seed
            )
            released = [
                Released(key, result.text, result.variants)
                for key, result in zip(QUERIES, obfuscator.obfuscate(texts), strict=True)
            ]
            report = attack(
                released,
                mechanism=made,
                release="once",
                pipeline=pipeline,
                log=QueryLog(near),
                add_originals=True,
                rng=seed,
            )
            named.append(max(inference.lazy.value for _, inference in report.inferences))
        print(f"cmp {epsilon:g}: {np.mean(named):.2f} of a list of {len(near) + len(texts)}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["cover"]:
            cover()
        case ["words", *numbers]:
            words([float(number) for number in numbers])
        case _:
            sys.exit(__doc__)
