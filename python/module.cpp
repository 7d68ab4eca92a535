// import revisit: the library from Python.
//
// Problem. Traces and histograms are arrays, and Python's arrays are numpy's: copying 10^9 addresses to
// count them would cost more memory than counting does.
// Idea. analyze() reads the caller's arrays where they lie; bins and curves come back as numpy arrays
// over the memory of the profile they are part of. The interpreter's lock is let go while the library
// counts. Everything else is a thin name for what the C++ headers say.
#include "module.h"

namespace revisit {

Binning parse_bins(const std::string& spec) {
    return value_or_raise(Binning::parse(spec));
}

std::uint64_t bytes_of(const py::object& size) {
    if (py::isinstance<py::str>(size)) return value_or_raise(parse_bytes(size.cast<std::string>()));
    return size.cast<std::uint64_t>();
}

std::uint64_t count_of(const py::object& count) {
    if (py::isinstance<py::str>(count)) return value_or_raise(parse_count(count.cast<std::string>()));
    if (py::isinstance<py::float_>(count)) {  // 1e6
        double number = count.cast<double>();
        if (!(number >= 0 && number < 0x1p63)) throw PythonError("expected a count of at least 0");
        return static_cast<std::uint64_t>(number);
    }
    return count.cast<std::uint64_t>();
}

CacheSpec cache_of(const py::object& cache) {
    if (py::isinstance<py::str>(cache))
        return value_or_raise(CacheSpec::parse(cache.cast<std::string>()));
    return cache.cast<CacheSpec>();
}

}  // namespace revisit

PYBIND11_MODULE(revisit, module) {
    using namespace revisit;
    module.doc() = "How programs reuse memory: reuse distances, caches, traces made to measure.";
    py::register_exception<PythonError>(module, "Error", PyExc_ValueError);
    declare_profile(module);
    declare_arrays(module);
}
