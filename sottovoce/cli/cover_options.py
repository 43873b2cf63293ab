"""Options of ``sottovoce search`` that let a query leave in company."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from sottovoce import defaults
from sottovoce.choices import Decoys, Release
from sottovoce.cli.options import MechanismOptions, ResourceOptions
from sottovoce.cli.output import progress_bar
from sottovoce.errors import UsageError

if TYPE_CHECKING:
    from sottovoce.mechanisms import Mechanism
    from sottovoce.obfuscation import Obfuscator


@dataclass(frozen=True)
class CoverOptions:
    """Hide which of several public queries is meant, instead of rewriting the query."""

    panel: ClassVar[str] = "Cover: send public queries only"

    cover: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            help="Send K queries of --pool: the one nearest to yours among others. Yours itself is "
            "sent only if it is one of the pool's.",
            show_default=False,
        ),
    ] = None
    one_in: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Instead of --cover and --group: be one in N, 20 for example, for whoever expects "
            "just what --decoys are drawn by.",
            show_default=False,
        ),
    ] = None
    most_queries: Annotated[
        int | None,
        typer.Option(
            metavar="Q",
            help="With --one-in: send at most Q queries; those left over make groups, which find "
            "more. As few as possible if not given.",
            show_default=False,
        ),
    ] = None
    inclusion: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Chance that the nearest one is among them, below 1; 0.9 if not given.",
            show_default=False,
        ),
    ] = None
    group: Annotated[
        int | None,
        typer.Option(
            metavar="M",
            help="Send K groups of M: each query with the M - 1 of the pool nearest to it.",
            show_default=False,
        ),
    ] = None

    decoys: Annotated[
        Decoys | None,
        typer.Option(
            help="How the others are drawn: all alike, by the popularity that the pool states, "
            "as one does that was made with --like, or rather on subjects that people hide. If "
            "not given: popular where the pool states a popularity, else sensitive.",
            show_default=False,
        ),
    ] = None

    subjects: Annotated[
        int | None,
        typer.Option(
            metavar="C",
            help="Searches on one subject have others that run along: cut the pool into C subjects "
            "(0: one for each 50 queries), and send one query each of K subjects that stay the "
            "same as long as yours does. It hides the subject, not which query of it is meant.",
            show_default=False,
        ),
    ] = None

    chorus: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            help="Instead of --cover, for queries that no public one stands for: obfuscate K - 1 "
            "queries of --pool as yours is, and send the variants of all. Which is meant then has "
            "no proof.",
            show_default=False,
        ),
    ] = None

    def mechanism(
        self, given: MechanismOptions, n: int | None, release: Release | None
    ) -> MechanismOptions:
        """What is asked for, as a mechanism; refuses options that would do or hide nothing."""
        from sottovoce.mechanisms.cover_choice import require_hiding

        if self.one_in is not None:
            return self._one_in_many(self.one_in).mechanism(given, n, release)
        if self.most_queries is not None:
            raise UsageError("--most-queries goes with --one-in N: say among how many to hide")
        if self.cover is None:
            others = (self.inclusion, self.group, self.decoys, self.subjects)
            if any(option is not None for option in others):
                raise UsageError(
                    "--inclusion, --group, --decoys and --subjects go with --cover K, or --one-in "
                    "N: say how many queries"
                )
            return given
        require_hiding(self.cover, self.inclusion)
        ignored = {
            "-m": given.mechanism != defaults.MECHANISM,
            "-e": given.epsilon is not None,
            "--set": bool(given.set),
            "-n": n is not None,
            "--release": release is not None,
            "--chorus": self.chorus is not None,
        }
        for option in ignored:
            if ignored[option]:
                raise UsageError(f"{option} does nothing with --cover: leave one of them out")
        parameters = {
            "k": self.cover,
            "p": self.inclusion,
            "m": self.group,
            "decoys": self.decoys,
            "subjects": self.subjects,
        }
        pairs = [f"{key}={value}" for key, value in parameters.items() if value is not None]
        return MechanismOptions("cover" if self.subjects is None else "cover-subjects", None, pairs)

    def with_decoys(self, built: Mechanism) -> Mechanism:
        """The same with the usual decoys for its pool, unless --decoys says which."""
        from sottovoce.mechanisms.cover import Cover
        from sottovoce.mechanisms.cover_choice import usual_decoys

        asked = self.cover is not None or self.one_in is not None
        if not asked or self.decoys is not None or not isinstance(built, Cover):
            return built
        return replace(built, decoys=usual_decoys(built.pool))

    def _one_in_many(self, one_in: int) -> CoverOptions:
        """The same in numbers of queries and groups."""
        from sottovoce.mechanisms import cover_for

        if self.cover is not None or self.group is not None:
            raise UsageError(
                "--one-in decides --cover and --group: leave them out, or leave it out"
            )
        choice = cover_for(one_in, self.most_queries)
        if self.subjects is not None and choice.m > 1:
            raise UsageError("--subjects sends one query of each: leave --most-queries out")
        group = choice.m if choice.m > 1 else None
        return replace(self, cover=choice.k, group=group, one_in=None, most_queries=None)

    def without_pool(self, resources: ResourceOptions) -> ResourceOptions:
        """What the mechanism works on; the pool of a chorus is not among it."""
        if self.chorus is None:
            return resources
        if resources.pool is None:
            raise UsageError("--chorus takes public queries from --pool: give one, such as demo")
        return replace(resources, pool=None, encoder="auto")

    def in_chorus(self, obfuscator: Obfuscator, resources: ResourceOptions) -> Obfuscator:
        """The same, with texts of the pool obfuscated beside each query, if that is asked for."""
        from sottovoce.mechanisms.build import load_resource
        from sottovoce.obfuscation import Chorus

        if self.chorus is None:
            return obfuscator
        with progress_bar("reading the pool") as progress:
            pool = load_resource("pool", resources.settings, progress)
        settings = {field.name: getattr(obfuscator, field.name) for field in fields(obfuscator)}
        return Chorus(**settings, pool=pool, k=self.chorus)
