"""Everything that requests share, loaded once: collection, engine, spaces, encoders, mechanisms."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sottovoce import defaults
from sottovoce.app.public_queries import read_public_queries
from sottovoce.app.schemas import VOICES, ProtectionBody, given_parameters
from sottovoce.app.settings import Settings
from sottovoce.app.usual_voice import UsualVoice, size_in_words, usual_voice
from sottovoce.choices import IN_COMPANY
from sottovoce.engines.base import language_of, uses_order
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.guarantees import Guarantee
from sottovoce.ledger import Ledger, Promise, own_queries_among
from sottovoce.mechanisms.base import Mechanism, SetMechanism
from sottovoce.mechanisms.build import build, parse
from sottovoce.mechanisms.cover_choice import CoverChoice, cover_for, usual_decoys
from sottovoce.obfuscation import Obfuscator, release_for
from sottovoce.search.layout import fitted_to, laid_out_for
from sottovoce.search.private_search import PrivateSearch, require_sendable
from sottovoce.search.reranking import EncoderReranker, Reranker, load_reranker
from sottovoce.text import TextPipeline

if TYPE_CHECKING:
    from sottovoce.collections import Collection, Document
    from sottovoce.encoders import Encoder
    from sottovoce.engines.base import LocalEngine, SearchEngine
    from sottovoce.pools import Pool
    from sottovoce.privacy import QueryLog
    from sottovoce.spaces.space import WordSpace
    from sottovoce.types import Progress

Part = TypeVar("Part")

MECHANISMS_KEPT = 16


class LoadingError(SottovoceError):
    """Something is asked for that is not loaded yet."""

    retry_after = 1


class Lazy(Generic[Part]):
    """Something that is loaded when first asked for, and after a failure tried again."""

    def __init__(self, load: Callable[[], Part]) -> None:
        self._load, self._lock = load, Lock()
        self._part: Part | None = None

    def __call__(self) -> Part:
        """The thing itself."""
        if self._part is None:
            with self._lock:
                if self._part is None:
                    self._part = self._load()
        return self._part

    @property
    def is_loaded(self) -> bool:
        """Whether asking for it takes no time."""
        return self._part is not None


@dataclass(frozen=True)
class Protection:
    """How a query is protected: what draws its variants, and whether words are drawn anew."""

    obfuscator: Obfuscator
    fresh: bool = False


class LoadedParts:
    """The parts that a running service works with."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.collection: Lazy[Collection] = Lazy(self._load_collection)
        self.engine: Lazy[SearchEngine] = Lazy(self._load_engine)
        self.reranker: Lazy[Reranker] = Lazy(self._load_reranker)
        self.space: Lazy[WordSpace] = Lazy(self._load_space)
        self.fitted_space: Lazy[WordSpace] = Lazy(self._fit_space)
        self.log: Lazy[QueryLog] = Lazy(self._load_log)
        self.public_queries: Lazy[Pool] = Lazy(lambda: read_public_queries(self.settings))
        self.pool: Lazy[Pool] = Lazy(lambda: self.public_queries().prepare())
        self.corpus: Lazy[LocalEngine] = Lazy(self._load_corpus)
        self.log_sha256: Lazy[str] = Lazy(self._hash_log)
        self._mechanisms: OrderedDict[tuple[Any, ...], Mechanism] = OrderedDict()
        self._lock, self._building = Lock(), Lock()
        self._collection_is_searched = False
        self.ready = False
        """Whether everything was tried to be loaded; ``problems`` says what is missing."""

    def load_named(self, progress: Progress | None = None) -> None:
        """Load what people named: a wrong name ends the start, and so does a pool without use.

        progress
            Is told how many strings of the pool have vectors, where they are computed now.
        """
        self.engine()
        self.log()
        if self.settings.names_public_queries:
            self.public_queries()
        if self.settings.pool is not None:
            self.public_queries().prepare(progress)
            self.require_company("name another pool with --pool, or leave it out")

    def load_all(self) -> None:
        """Load what a first search needs; what is missing is said in ``problems``."""
        self.problems()
        self.ready = True
        with suppress(SottovoceError):  # For the voices that replace words.
            self.fitted_space()
        with suppress(SottovoceError):  # Whoever asks for the risk will be told.
            for encoder in self.attackers():
                self.log().vectors(encoder)
            _ = self.log().bags
        with suppress(SottovoceError):
            self._learn_company()

    def _learn_company(self) -> None:
        """What attackers on company learn of the log, where company is usual: it takes seconds."""
        from sottovoce.privacy.attacks.company.nearness import near_to
        from sottovoce.privacy.attacks.company.public_texts import queries_of

        if self.usual_voice().id == IN_COMPANY:
            near_to(queries_of(self.log(), self.pool()))

    def require_ready(self) -> None:
        """Refuse rather than wait for what is being loaded."""
        if not self.ready:
            raise LoadingError("the service is still loading: try again in a moment")

    def attackers(self) -> list[Encoder]:
        """What an attacker compares queries with: every encoder, the engine's own among them."""
        from sottovoce.engines.dense import Dense
        from sottovoce.privacy import attacker_encoders

        engine = self.engine()
        return attacker_encoders(engine.encoder.name if isinstance(engine, Dense) else None)

    def problems(self) -> list[str]:
        """What is missing, and what to do about it."""
        sentences: dict[str, None] = {}
        parts: tuple[Callable[[], Any], ...] = (
            *(self.engine, self.log, self.space, self.reranker),
            self.offers_company,
        )
        for part in parts:
            try:
                part()
            except SottovoceError as error:
                sentences[str(error)] = None
            except Exception as error:
                sentences[f"something cannot be loaded ({type(error).__name__})"] = None
        return list(sentences)

    # How a text is protected

    def mechanism(self, spec: str, parameters: dict[str, Any]) -> Mechanism:
        """The mechanism with these parameters; those used lately are kept."""
        kind, arguments = parse(spec, **parameters)
        key = (kind.name, *sorted(arguments.items()))
        if (kept := self._kept_mechanism(key)) is not None:
            return kept
        with self._building:
            if (kept := self._kept_mechanism(key)) is not None:
                return kept
            provided: dict[str, Callable[[], Any]] = {
                "space": self.space,
                "engine": self.corpus,
                "pool": self.pool,
            }
            built = build(spec, parameters, provided=provided)
        with self._lock:
            self._mechanisms[key] = built
            while len(self._mechanisms) > MECHANISMS_KEPT:
                self._mechanisms.popitem(last=False)
        return built

    def _kept_mechanism(self, key: tuple[Any, ...]) -> Mechanism | None:
        with self._lock:
            kept = self._mechanisms.get(key)
            if kept is not None:
                self._mechanisms.move_to_end(key)
            return kept

    def protection(self, body: ProtectionBody) -> Protection:
        """What a voice, or the details, stand for; as ``sottovoce search`` has it."""
        if body.one_in is not None:
            built = self._cover(cover_for(body.one_in, body.most_queries), body.set)
        elif body.has_details:
            spec, parameters = body.mechanism or defaults.MECHANISM, given_parameters(body)
            if spec == defaults.MECHANISM:
                parameters = {"epsilon": defaults.SEARCH_EPSILON, **parameters}
            built = self.mechanism(spec, parameters)
        else:
            named = body.voice or self.usual_voice().id
            voice = next(voice for voice in VOICES if voice.id == named)
            if voice.in_company:
                built = self._cover(cover_for(self.usual_variants), {})
            else:
                built = self.mechanism(defaults.MECHANISM, {"epsilon": voice.epsilon})
        built = fitted_to(self.engine(), built, self.fitted_space)
        usual = 1 if isinstance(built, SetMechanism) else self.usual_variants
        obfuscator = Obfuscator(
            built,
            n=body.n or usual,
            release=release_for(built, body.release),
            pipeline=self.pipeline(built),
        )
        return Protection(obfuscator, fresh=body.fresh)

    def _cover(self, choice: CoverChoice, parameters: dict[str, Any]) -> Mechanism:
        """A cover with the usual decoys for its pool, unless the parameters say which."""
        return self.mechanism(choice.spec, {"decoys": usual_decoys(self.pool()), **parameters})

    def offers_company(self) -> bool:
        """Whether there is a voice in company.

        A query log of few lines is no pool to hide in, and a query that leaves alone is not hidden.
        What cannot be loaded is another matter: then no other voice may speak instead.
        """
        try:
            self.require_company()
        except UsageError:
            return False
        return True

    def require_company(self, otherwise: str = "choose another voice") -> None:
        """Refuse public queries that none can leave among, saying what else to do."""
        try:
            if self.usual_variants < 2:
                raise UsageError("the engine takes one query a search, and alone none is hidden")
            protection = self.protection(ProtectionBody(voice=IN_COMPANY))
            require_sendable(protection.obfuscator.mechanism)
        except UsageError as error:
            message = f"no query can leave in company here: {error}; {otherwise}"
            raise error.with_message(message) from None

    @property
    def small_company(self) -> str | None:
        """How small a company is, and why, where the engine takes fewer queries than usual."""
        size = size_in_words(self.usual_variants)
        return None if size is None else f"A query leaves in a company {size}."

    def own_queries(self) -> str | None:
        """A warning where queries would leave in company of what the person asked before."""
        return own_queries_among(self.public_queries().strings)

    def usual_voice(self) -> UsualVoice:
        """The voice of requests that name none."""
        self.engine()
        return usual_voice(
            self.settings,
            own_documents=not self._collection_is_searched,
            can_hide=self.offers_company(),
            queries=self.usual_variants,
        )

    def pipeline(self, mechanism: Mechanism) -> TextPipeline:
        """How queries are cut, and their words laid out for the engine."""
        return laid_out_for(
            self.engine(),
            TextPipeline(protect=mechanism.protects),
            mechanism,
            shuffle=self.shuffles,
            pad_to=self.settings.pad_to,
            drop_function_words=True,
        )

    @property
    def shuffles(self) -> bool:
        """Whether words are sent in random order, by mechanisms that replace word by word."""
        shuffle = self.settings.shuffle
        return not uses_order(self.engine()) if shuffle is None else shuffle

    @property
    def usual_variants(self) -> int:
        """How many variants are sent: fewer where the engine takes no more."""
        most = self.engine().most_queries
        return defaults.VARIANTS if most is None else min(defaults.VARIANTS, most)

    @property
    def depth(self) -> int:
        """Documents taken from each answer."""
        usual = defaults.usual_depth(self.settings.collection, remote=self.engine().remote)
        return self.settings.depth or usual

    def private_search(self, protection: Protection, ledger: Ledger) -> PrivateSearch:
        """A search that protects queries like this."""
        return PrivateSearch(
            protection.obfuscator,
            engine=self.engine(),
            reranker=self.reranker(),
            ledger=ledger,
            fresh=protection.fresh,
            depth=self.depth,
        )

    # Loading

    def _load_collection(self) -> Collection:
        from sottovoce.collections import load_collection

        return load_collection(self.settings.collection)

    def _load_engine(self) -> SearchEngine:
        from sottovoce.engines import choose_engine

        return choose_engine(self.settings.engine, self._documents())

    def _documents(self) -> Iterator[Document]:
        """Read only when an engine asks for them."""
        self._collection_is_searched = True
        yield from self.collection().documents

    def _load_reranker(self) -> Reranker:
        from sottovoce.engines.base import LocalEngine

        reranker, engine = load_reranker(self.settings.reranker), self.engine()
        if isinstance(reranker, EncoderReranker) and isinstance(engine, LocalEngine):
            documents = self.collection().documents
            reranker.prepare([engine.text(document.doc_id) for document in documents])
        return reranker

    def _load_space(self) -> WordSpace:
        from sottovoce.resources.local import load_space

        return load_space(self.settings.space)

    def _fit_space(self) -> WordSpace:
        """The word space with the words that a search releases."""
        from sottovoce.output_vocabularies import of_search

        documents = [] if self.engine().remote else self.collection().documents
        space = self.space()
        language = language_of(self.engine())
        return space.with_output(of_search(space, documents, self.settings.collection, language))

    def _load_log(self) -> QueryLog:
        from sottovoce.privacy import QueryLog, read_log

        return QueryLog(read_log(self.settings.log))

    def _hash_log(self) -> str:
        from sottovoce.experiments.fingerprints import digest

        return digest(self.log().queries)

    def _load_corpus(self) -> LocalEngine:
        from sottovoce.engines import BM25
        from sottovoce.engines.base import LocalEngine

        engine = self.engine()
        if not isinstance(engine, LocalEngine):
            raise UsageError(
                "this mechanism reads its words off documents of yours: start the service with an "
                "engine on this machine, such as --engine bm25"
            )
        return engine if isinstance(engine, BM25) else BM25(self.collection().documents)


def account_of(mechanism: Mechanism, guarantee: Guarantee) -> Promise:
    """What the ledger counts releases with: those that are equal in all of it add up."""
    where = mechanism.metric_space
    return Promise.of(guarantee, where[1] if where else None)
