"""How programs reuse memory: reuse distances, caches, traces made to measure."""
import os
from typing import Any, Dict, Iterable, List, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

Path = Union[str, "os.PathLike[str]"]

__version__: str

class Error(ValueError):
    """What went wrong, in one sentence."""

class ArgumentError(Error, TypeError):
    """An argument of another type than expected."""

class Histogram:
    """Distances in bins, infinite ones beside them."""

    @property
    def cold(self) -> float:
        """First touches."""
    @property
    def invalidated(self) -> float:
        """Reuses lost to another thread's write."""
    @property
    def cold_error(self) -> float:
        """95 % half-width of cold; 0 = exact."""
    @property
    def invalidated_error(self) -> float:
        """95 % half-width of invalidated; 0 = exact."""
    @property
    def finite(self) -> float:
        """The sum of the bins."""
    @property
    def total(self) -> float:
        """The sum of the bins, cold and invalidated."""
    @property
    def bins(self) -> npt.NDArray[np.void]:
        """A structured array over the histogram's own memory: low, high (excluded), count, error."""
    def percentile(self, share: float) -> float:
        """The distance below which that share of the finite reuses lies."""
    def rebin(self, bins: str) -> "Histogram":
        """Folded into coarser bins: log2, log2:K, linear:W."""
    def miss_ratio_curve(self) -> npt.NDArray[np.void]:
        """Miss ratio of a fully associative cache by its size: an array of blocks and miss_rate."""
    def __eq__(self, other: object) -> bool: ...

class Cache:
    """A cache, out of NAME=SIZE:WAYS:LINE or SIZE:WAYS:LINE."""

    def __init__(self, spec: str) -> None: ...
    @property
    def name(self) -> str:
        """The name given, or the text it was made from."""
    @property
    def bytes(self) -> int:
        """Its size."""
    @property
    def line(self) -> int:
        """Bytes per line."""
    @property
    def ways(self) -> int:
        """Lines per set; all of them where it is fully associative."""
    @property
    def blocks(self) -> int:
        """Lines in all."""
    def __eq__(self, other: object) -> bool: ...

class CachePrediction:
    """What a cache makes of a profile."""

    @property
    def cache(self) -> Cache:
        """The cache."""
    @property
    def hit_rate(self) -> float:
        """Share of the accesses that hit."""
    @property
    def miss_rate(self) -> float:
        """Share of the accesses that miss."""
    @property
    def error(self) -> float:
        """95 % half-width of the rates; 0 = an exact profile."""

class Frame:
    """A place in the source."""

    @property
    def function(self) -> str:
        """The function's name; empty where it is not known."""
    @property
    def file(self) -> str:
        """The source file; empty where it is not known."""
    @property
    def line(self) -> int:
        """The line; 0 where it is not known."""

class Site:
    """One instruction that accesses memory."""

    @property
    def id(self) -> int:
        """What traces, pairs and contexts call it."""
    @property
    def module(self) -> str:
        """The program or library that holds it."""
    @property
    def offset(self) -> int:
        """Its address in the module."""
    @property
    def frame(self) -> Frame:
        """Where it is in the source."""
    @property
    def inlined(self) -> List[Frame]:
        """The places it was inlined into, the outermost last."""
    @property
    def loop(self) -> Frame:
        """Where the innermost loop around it begins; line 0: none is known."""
    @property
    def data(self) -> str:
        """The object it accesses most."""
    @property
    def accesses(self) -> float:
        """How often it ran."""
    @property
    def writes(self) -> float:
        """Of these, stores."""
    @property
    def reuse(self) -> Histogram:
        """Distances of the reuses that end here."""
    @property
    def time_share(self) -> Optional[float]:
        """Share of the processor time at its source line, where that was sampled."""
    @property
    def regular(self) -> Optional[float]:
        """Share of its misses on a constant stride, which prefetchers hide."""

class Context:
    """A node of the calling-context tree; 0 is the root."""

    @property
    def parent(self) -> int:
        """The index of the caller's context."""
    @property
    def module(self) -> str:
        """The program or library of the call."""
    @property
    def offset(self) -> int:
        """The call's address in the module."""
    @property
    def frame(self) -> Frame:
        """Where the call is in the source."""

class Pair:
    """Use → reuse, by site ids."""

    @property
    def use(self) -> int:
        """The site that touched the block last."""
    @property
    def reuse(self) -> int:
        """The site that came back for it."""
    @property
    def use_context(self) -> int:
        """Index of the use's context; 0 where it is not known."""
    @property
    def reuse_context(self) -> int:
        """Index of the reuse's context; 0 where it is not known."""
    @property
    def count(self) -> float:
        """How often."""
    @property
    def distances(self) -> Histogram:
        """The distances between the two."""

class Object:
    """A piece of data."""

    @property
    def kind(self) -> str:
        """heap, global, stack or array."""
    @property
    def name(self) -> str:
        """What the program calls it, or where it was allocated."""
    @property
    def bytes(self) -> int:
        """Its size."""
    @property
    def context(self) -> int:
        """Index of the context that allocated it."""
    @property
    def accesses(self) -> float:
        """Accesses to it."""
    @property
    def reuse(self) -> Histogram:
        """Distances of the reuses of its blocks."""

class ThreadProfile:
    """What one thread did."""

    @property
    def id(self) -> int:
        """The thread's number."""
    @property
    def accesses(self) -> float:
        """Its accesses."""
    @property
    def reuse(self) -> Histogram:
        """Its reuse distances."""

class Phase:
    """A window of the run, in accesses."""

    @property
    def begin(self) -> float:
        """Its first access."""
    @property
    def end(self) -> float:
        """The access after its last."""
    @property
    def distinct(self) -> float:
        """Blocks first touched in it."""
    @property
    def reuse(self) -> Histogram:
        """Distances of the reuses in it."""

class Sampling:
    """How an estimate was sampled."""

    @property
    def period(self) -> float:
        """Accesses that a sample stands for."""
    @property
    def samples(self) -> float:
        """How many samples there are."""
    @property
    def pruned(self) -> float:
        """Share of the samples given up."""
    @property
    def accesses_error(self) -> float:
        """95 % half-width of the accesses; 0 where they were counted."""
    @property
    def distinct_low(self) -> float:
        """Blocks that were touched, at least; 0 where that is not known."""
    @property
    def distinct_high(self) -> float:
        """Blocks that were touched, at most; 0 where that is not known."""

class Profile:
    """What was counted; print() shows it as `revisit report` does."""

    @property
    def method(self) -> str:
        """The method that counted."""
    @property
    def model(self) -> str:
        """single, private or shared."""
    @property
    def granularity(self) -> int:
        """Bytes per block."""
    @property
    def accesses(self) -> float:
        """Accesses, counted once in each block they touch."""
    @property
    def distinct(self) -> float:
        """Blocks touched."""
    @property
    def reuse(self) -> Histogram:
        """Reuse distances, in blocks."""
    @property
    def time(self) -> Optional[Histogram]:
        """Time distances, in accesses, where they were asked for."""
    @property
    def shared(self) -> Optional[Histogram]:
        """Model both: what one stack for all threads would see."""
    @property
    def sampled(self) -> Optional[Sampling]:
        """How it was sampled; None: every access was counted."""
    @property
    def threads(self) -> List[ThreadProfile]:
        """The threads, with the private model."""
    @property
    def sites(self) -> List[Site]:
        """The instructions, where sites were given."""
    @property
    def contexts(self) -> List[Context]:
        """The calling-context tree."""
    @property
    def pairs(self) -> List[Pair]:
        """Use → reuse pairs, where they were asked for."""
    @property
    def objects(self) -> List[Object]:
        """The data, where the recorder knew it."""
    @property
    def phases(self) -> List[Phase]:
        """Windows of the run, where they were asked for."""
    @property
    def machine(self) -> str:
        """The machine it was measured on."""
    @property
    def command(self) -> List[str]:
        """The program and its arguments."""
    @property
    def clock(self) -> str:
        """How time was counted, where it was not by access."""
    @property
    def notes(self) -> List[str]:
        """What a reader should know: limits and causes."""
    @property
    def assumes(self) -> List[str]:
        """Of a prediction: what is taken for granted."""
    @property
    def exact(self) -> Optional[bool]:
        """Of a prediction: whether a run would measure the same."""
    @property
    def certainty(self) -> Optional[str]:
        """Of a prediction: "exact", "fitted" or "estimated"."""
    def cache(self, cache: Union[str, Cache]) -> CachePrediction:
        """What a cache, e.g. "32K:8:64", makes of the profile; warns where its blocks are not the cache's lines."""
    def hit_rates(self, sizes: Iterable[Union[int, str]], ways: int = 0, line: int = 64) -> npt.NDArray[np.float64]:
        """Hit rates of caches of these sizes, in bytes or as in "32K"; ways 0 = fully associative."""
    def miss_ratio_curve(self) -> npt.NDArray[np.void]:
        """The miss-ratio curve of its reuse histogram: an array of blocks and miss_rate."""
    def curve_svg(self) -> str:
        """The miss-ratio curve as an SVG picture."""
    def sites_frame(self, library: Optional[str] = None) -> Any:
        """The sites as a DataFrame of pandas, or of polars where that is installed or asked for."""
    def pairs_frame(self, library: Optional[str] = None) -> Any:
        """The use → reuse pairs as a DataFrame."""
    def save(self, path: Path) -> None:
        """Writes the profile as JSON."""
    def to_json(self) -> str:
        """The profile as JSON."""
    def write_page(self, path: Path, caches: Iterable[Union[str, Cache]] = ..., title: str = "profile", sources: bool = False) -> None:
        """Writes the report as one HTML page; caches: those to mark, else this machine's."""
    def __add__(self, other: "Profile") -> "Profile":
        """Two runs, ranks or processes together."""
    def __eq__(self, other: object) -> bool: ...

def analyze(
    addresses: npt.ArrayLike,
    *,
    method: str = "exact",
    granularity: Union[int, str] = 64,
    bins: str = "log2:8",
    model: str = "single",
    sites: Optional[npt.ArrayLike] = None,
    sizes: Optional[npt.ArrayLike] = None,
    threads: Optional[npt.ArrayLike] = None,
    writes: Optional[npt.ArrayLike] = None,
    time: bool = False,
    pairs: bool = False,
    phases: int = 0,
    workers: int = 1,
    rate: Optional[float] = None,
    target_error: Optional[float] = None,
    time_model: Optional[str] = None,
    seed: int = 1,
) -> Profile:
    """Profiles an array of addresses; uint64 and int64 ones are read where they lie.

    sites, sizes, threads and writes are arrays as long as addresses, or left out. workers are the
    threads that count, 0 = all cores. The other options are those of `revisit analyze`; rate,
    target_error and time_model belong to the methods sample and shards, sample, and time.
    """

class Analysis:
    """An analysis of accesses that come array by array: add() them, then finish().

    The options are those of analyze(). sites=True where accesses come with sites.
    """

    def __init__(
        self,
        *,
        method: str = "exact",
        granularity: Union[int, str] = 64,
        bins: str = "log2:8",
        model: str = "single",
        sites: bool = False,
        time: bool = False,
        pairs: bool = False,
        phases: int = 0,
        workers: int = 1,
        rate: Optional[float] = None,
        target_error: Optional[float] = None,
        time_model: Optional[str] = None,
        seed: int = 1,
    ) -> None: ...
    def add(
        self,
        addresses: npt.ArrayLike,
        *,
        sites: Optional[npt.ArrayLike] = None,
        sizes: Optional[npt.ArrayLike] = None,
        threads: Optional[npt.ArrayLike] = None,
        writes: Optional[npt.ArrayLike] = None,
    ) -> None:
        """Counts these accesses after those before."""
    def finish(self) -> Profile:
        """The profile; nothing is added afterwards."""

def methods() -> Dict[str, str]:
    """The methods of analyze, and what each does."""

def generate(
    like: Union[Profile, Histogram, str],
    *,
    length: Union[int, float, str, None] = None,
    distinct: Union[int, float, str, None] = None,
    granularity: Union[int, str, None] = None,
    threads: int = 1,
    sharing: float = 0.0,
    writes: float = 0.0,
    seed: int = 1,
    columns: bool = False,
) -> Any:
    """Addresses with the reuse distances of `like`: a Profile, a Histogram or a distribution.

    With columns, a dict of arrays that analyze(**columns) takes.
    """

def read_trace(path: Path, format: str = "") -> Dict[str, npt.NDArray[Any]]:
    """A trace in any format revisit reads, as a dict of arrays that analyze(**columns) takes."""

def load(path: Path) -> Profile:
    """Reads a profile."""

def from_json(text: str) -> Profile:
    """The profile in a text."""

def accuracy(truth: Histogram, estimate: Histogram) -> float:
    """S: 1 - half the sum of the differences of bins' shares."""

def host_caches() -> Sequence[Cache]:
    """The data caches of this machine, nearest first."""
