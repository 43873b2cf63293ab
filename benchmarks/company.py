"""Attacks on company: how often the query's own string is named, by decoys and by attacker.

    python benchmarks/company.py                              the demo pool, light encoder
    python benchmarks/company.py --pool FILE --like FILE --texts FILE    a kind of query

``--like`` are public texts of the kind that ``--texts`` are of: one half of them makes decoys
popular, attackers learn from the other. Files are read as pools are. Shares are means over sets.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sottovoce import mechanism
from sottovoce.collections import load_judged_queries, read_strings
from sottovoce.likeness import fit_likeness
from sottovoce.mechanisms.base import SetMechanism
from sottovoce.pools import Pool, load_pool
from sottovoce.privacy import CompanyReport, Knowledge, attack_company, attack_sets
from sottovoce.privacy.attacks.company.sets import seen_sets
from sottovoce.text.comparing import folded_text

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import decoy_sources as sources


def main() -> None:
    """Print a line for each kind of decoys."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pool", default="demo")
    parser.add_argument("--encoder", default="light")
    parser.add_argument("--like", help="public texts of the kind")
    parser.add_argument("--texts", help="what is asked")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--mechanism", action="append", help="one more, for sessions")
    options = parser.parse_args()
    seeds = [int(seed) for seed in options.seeds.split(",")]
    pool = load_pool(options.pool, options.encoder)
    if options.texts:
        texts = list(read_strings(options.texts))
        like = without(list(read_strings(options.like)), texts)
        kinds(pool, texts, like, seeds)
        return
    subjects = list(load_judged_queries("demo").values())
    naive(pool, subjects, seeds[0])
    kind = sources.near_subjects(pool, subjects, 15)
    order = np.random.default_rng(0).permutation(len(kind))
    asked = [kind[at] for at in order[: len(kind) // 3]]
    like = without(kind, asked)
    kinds(pool, asked, like, seeds)
    sessions(pool, subjects[:60:3], like, seeds, options.mechanism or [])


def without(texts: Sequence[str], attacked: Sequence[str]) -> list[str]:
    """The texts that are not attacked, in random order."""
    there = set(map(folded_text, attacked))
    others = [text for text in texts if folded_text(text) not in there]
    return [others[at] for at in np.random.default_rng(1).permutation(len(others))]


def show(label: str, reports: Sequence[CompanyReport]) -> None:
    """The mean of each attack over the seeds: named, and its subject named."""
    print(f"\n{label}: {reports[0].sets} sets, {reports[0].persons} persons, ", end="")
    print(f"blind guess {np.mean([report.chance for report in reports]):.3f}")
    for made in reports[0].namings:
        namings = [report.naming(made.attack) for report in reports]
        named, subject = (
            np.mean([share.value for share in shares])
            for shares in ([n.group for n in namings], [n.subject for n in namings])
        )
        print(f"  {made.attack:32} {named:.2f}   subject {subject:.2f}", flush=True)


def naive(pool: Pool, texts: Sequence[str], seed: int) -> None:
    """Sources without a law."""
    rng = np.random.default_rng(seed)
    reference = without(pool.strings, texts)
    made_up = sources.random_words(pool, 3000, rng)
    listed = reference[:60]
    harmless = sources.harmless(pool, texts, 1000)
    for label, decoys, known in (
        ("random words", made_up, Knowledge(reference)),
        ("a short list", listed, Knowledge(decoys=listed)),
        ("harmless subjects", harmless, Knowledge()),
    ):
        seen = seen_sets(sources.with_decoys(texts, decoys, rng), texts, pool.encoder)
        background = Pool(dict.fromkeys([*decoys, *reference]), pool.encoder)
        show(f"decoys: {label}", [attack_sets(seen, background, known)])


def covers(pool: Pool, like: Sequence[str]) -> dict[str, SetMechanism]:
    """Uniform decoys, and such as people of the kind ask."""
    ratios = fit_likeness(like, pool).log_ratio(pool.strings, pool.vectors)
    popular = Pool(pool.strings, pool.encoder, weights=np.exp(ratios))
    return {
        "uniform": mechanism(f"cover:k={sources.K}", pool=pool),
        "popular": mechanism(f"cover:k={sources.K},decoys=popular", pool=popular),
    }


def kinds(pool: Pool, texts: Sequence[str], like: Sequence[str], seeds: Sequence[int]) -> None:
    """Single sets of a kind of query."""
    for label, cover in covers(pool, like[::2]).items():
        reports = [
            attack_company(
                cover,
                sources.released(cover, texts, seed),
                texts,
                knowledge=Knowledge(reference=like[1::2], listed=pool.strings),
            )
            for seed in seeds
        ]
        show(f"cover, {label} decoys", reports)


def sessions(
    pool: Pool,
    subjects: Sequence[str],
    like: Sequence[str],
    seeds: Sequence[int],
    more: Sequence[str],
) -> None:
    """Ten searches on one subject: the same ten times, three queries, ten different ones."""
    made = covers(pool, like[::2])
    made |= {spec: mechanism(spec, pool=pool) for spec in more}
    for different in (1, 3, 10):
        rng = np.random.default_rng(7)
        persons = sources.persons_on_subjects(pool, subjects, 10, different, rng)
        known = Knowledge(like[1::2], persons.histories, listed=pool.strings)
        for label, cover in made.items():
            for sticky in (False, True):
                reports = [
                    attack_company(
                        cover,
                        sources.released(
                            cover, persons.texts, seed, f"key {seed}".encode() if sticky else None
                        ),
                        persons.texts,
                        persons=persons.names,
                        knowledge=known,
                    )
                    for seed in seeds
                ]
                company = "sticky" if sticky else "fresh"
                show(f"ten searches, {different} different, {label}, {company}", reports)


if __name__ == "__main__":
    main()
