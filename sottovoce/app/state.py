"""Workbench: everything that requests share, loaded once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sottovoce.app.settings import Settings
from sottovoce.app.voices import DEFAULT, VARIANTS, VOICES
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.ledger import Ledger, request_key
from sottovoce.mechanisms.base import Mechanism
from sottovoce.mechanisms.build import build
from sottovoce.mechanisms.registry import parse
from sottovoce.obfuscation import Obfuscator, release_for
from sottovoce.search.private_search import PrivateSearch
from sottovoce.search.reranking import EncoderReranker, Reranker, load_reranker

if TYPE_CHECKING:
    from sottovoce.app.schemas import Chosen
    from sottovoce.collections import Collection
    from sottovoce.encoders import Encoder
    from sottovoce.engines.base import LocalEngine, SearchEngine
    from sottovoce.pools import Pool
    from sottovoce.privacy.query_log import QueryLog
    from sottovoce.spaces.space import WordSpace

Part = TypeVar("Part")

MECHANISMS_KEPT = 16


class LoadingError(SottovoceError):
    """Something is asked for that is not loaded yet."""

    retry_after = 1


class Once(Generic[Part]):
    """Something that is loaded when first asked for, and after a failure tried again."""

    def __init__(self, load: Callable[[], Part]) -> None:
        self._load, self._lock = load, Lock()
        self._found: Part | None = None

    def __call__(self) -> Part:
        """The thing itself."""
        if self._found is None:
            with self._lock:
                if self._found is None:
                    self._found = self._load()
        return self._found

    @property
    def there(self) -> bool:
        """Whether it is loaded."""
        return self._found is not None


@dataclass(frozen=True)
class Choice:
    """How a query is protected, ready to use."""

    obfuscator: Obfuscator
    remember: bool = False

    @property
    def release(self) -> str:
        """As people name it."""
        return "remembered" if self.remember else self.obfuscator.release

    @property
    def key(self) -> str:
        """What must be equal for two choices to be the same."""
        return f"{self.release} {request_key(self.obfuscator)}"


class Workbench:
    """The collection, its engine, spaces, encoders and mechanisms of a running service."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.collection: Once[Collection] = Once(self._load_collection)
        self.engine: Once[SearchEngine] = Once(self._load_engine)
        self.reranker: Once[Reranker] = Once(self._load_reranker)
        self.space: Once[WordSpace] = Once(self._load_space)
        self.log: Once[QueryLog] = Once(self._load_log)
        self.pool: Once[Pool] = Once(self._load_pool)
        self.corpus: Once[LocalEngine] = Once(self._load_corpus)
        self.log_sha256: Once[str] = Once(self._hash_log)
        self._mechanisms: OrderedDict[tuple[Any, ...], Mechanism] = OrderedDict()
        self._lock, self._building = Lock(), Lock()
        self.prepared = False

    def need(self) -> None:
        """Load what must be right from the beginning: wrong names end the start."""
        self.engine()
        self.log()

    def prepare(self) -> None:
        """Load what a first search needs; what is missing is said in ``problems``."""
        self.problems()
        self.prepared = True
        with suppress(SottovoceError):  # Whoever asks for the risk will be told.
            for encoder in self.attackers():
                self.log().vectors(encoder)

    def require_prepared(self) -> None:
        """Refuse rather than wait for what is being loaded."""
        if not self.prepared:
            raise LoadingError("the service is still loading: try again in a moment")

    def attackers(self) -> list[Encoder]:
        """What an attacker compares queries with: other encoders than the engine's."""
        from sottovoce.engines.dense import Dense
        from sottovoce.privacy.inference import attacker_encoders

        engine = self.engine()
        return attacker_encoders(engine.encoder.name if isinstance(engine, Dense) else None)

    def problems(self) -> list[str]:
        """What is missing, and what to do about it."""
        said: dict[str, None] = {}
        parts: tuple[Once[Any], ...] = (self.engine, self.log, self.space, self.reranker)
        for part in parts:
            try:
                part()
            except SottovoceError as error:
                said[str(error)] = None
            except Exception as error:
                said[f"something cannot be loaded ({type(error).__name__})"] = None
        return list(said)

    # How a text is protected

    def mechanism(self, spec: str, settings: dict[str, Any]) -> Mechanism:
        """The mechanism of these parameters; those used lately are kept."""
        kind, arguments = parse(spec, **settings)
        key = (kind.name, *sorted(arguments.items()))
        if (known := self._known(key)) is not None:
            return known
        with self._building:
            if (known := self._known(key)) is not None:
                return known
            provided: dict[str, Callable[[], Any]] = {
                "space": self.space,
                "engine": self.corpus,
                "pool": self.pool,
            }
            built = build(spec, settings, provided=provided)
        with self._lock:
            self._mechanisms[key] = built
            while len(self._mechanisms) > MECHANISMS_KEPT:
                self._mechanisms.popitem(last=False)
        return built

    def _known(self, key: tuple[Any, ...]) -> Mechanism | None:
        with self._lock:
            found = self._mechanisms.get(key)
            if found is not None:
                self._mechanisms.move_to_end(key)
            return found

    def choice(self, chosen: Chosen) -> Choice:
        """What a voice, or the details, stand for; as ``sottovoce search`` has it."""
        details = (chosen.mechanism, chosen.epsilon, chosen.n, chosen.release, chosen.set or None)
        if all(each is None for each in details):
            voice = next(each for each in VOICES if each.id == (chosen.voice or DEFAULT))
            built = self.mechanism("cmp", {"epsilon": voice.epsilon})
            return Choice(Obfuscator(built, n=self.usual_variants, release="once"))
        parameters = given_parameters(chosen.set, chosen.epsilon)
        built = self.mechanism(chosen.mechanism or "cmp", parameters)
        return Choice(
            Obfuscator(
                built,
                n=chosen.n or self.usual_variants,
                release=release_for(built, chosen.release),
            ),
            remember=chosen.release == "remembered",
        )

    @property
    def usual_variants(self) -> int:
        """How many variants a voice sends: fewer where the engine takes no more."""
        most = self.engine().most_queries
        return VARIANTS if most is None else min(VARIANTS, most)

    def search(self, choice: Choice, ledger: Ledger) -> PrivateSearch:
        """A search with this choice."""
        return PrivateSearch(
            choice.obfuscator,
            engine=self.engine(),
            reranker=self.reranker(),
            ledger=ledger,
            remember=choice.remember,
            depth=self.settings.documents,
        )

    # Loading

    def _load_collection(self) -> Collection:
        from sottovoce.collections import load_collection

        return load_collection(self.settings.collection)

    def _load_engine(self) -> SearchEngine:
        from sottovoce.engines.choose import choose_engine

        # Documents are read only if the engine asks for them.
        return choose_engine(self.settings.engine, (doc for doc in self._documents()))

    def _documents(self) -> Any:
        yield from self.collection().documents

    def _load_reranker(self) -> Reranker:
        from sottovoce.engines.base import LocalEngine

        reranker, engine = load_reranker(self.settings.reranker), self.engine()
        if isinstance(reranker, EncoderReranker) and isinstance(engine, LocalEngine):
            reranker.prepare([engine.text(each.doc_id) for each in self.collection().documents])
        return reranker

    def _load_space(self) -> WordSpace:
        from sottovoce.spaces.sources import resolve

        return resolve(self.settings.space)

    def _load_log(self) -> QueryLog:
        from sottovoce.privacy.query_log import QueryLog, read_log

        return QueryLog(read_log(self.settings.log))

    def _hash_log(self) -> str:
        from sottovoce.experiments.fingerprints import digest

        return digest(self.log().queries)

    def _load_pool(self) -> Pool:
        from sottovoce.pools import Pool, load_pool

        if self.settings.log == "demo":
            return load_pool("demo")
        return Pool(self.log().queries, "auto", name="log").prepare()

    def _load_corpus(self) -> LocalEngine:
        from sottovoce.engines.base import LocalEngine
        from sottovoce.engines.bm25 import BM25

        engine = self.engine()
        if not isinstance(engine, LocalEngine):
            raise UsageError(
                "this mechanism reads its words off documents of yours: start the service with an "
                "engine on this machine, such as --engine bm25"
            )
        return engine if isinstance(engine, BM25) else BM25(self.collection().documents)


def given_parameters(parameters: dict[str, Any], epsilon: float | None) -> dict[str, Any]:
    """What was said of a mechanism, epsilon among it."""
    return parameters if epsilon is None else {**parameters, "epsilon": epsilon}
