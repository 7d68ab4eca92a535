// import revisit: the library from Python.
//
// Problem. Traces and histograms are arrays, and Python's arrays are numpy's: copying 10^9 addresses to
// count them would cost more memory than counting does.
// Idea. analyze() reads the caller's arrays where they lie; bins and curves come back as numpy arrays
// over the memory of the profile they are part of. The interpreter's lock is let go while the library
// counts. Everything else is a thin name for what the C++ headers say.
#include "module.h"

#include <cmath>

namespace revisit {

Binning parse_bins(const std::string& spec) {
    return value_or_raise(Binning::parse(spec));
}

std::uint64_t whole_of(const char* name, const py::object& number, std::uint64_t most) {
    const std::string found = py::repr(number).cast<std::string>();
    PyObject* index = py::isinstance<py::bool_>(number) ? nullptr : PyNumber_Index(number.ptr());
    if (index == nullptr) {
        PyErr_Clear();
        throw PythonTypeError(std::string(name) + ": expected a whole number, found " + found);
    }
    auto value = py::reinterpret_steal<py::int_>(index);
    unsigned long long out = PyLong_AsUnsignedLongLong(value.ptr());
    if (PyErr_Occurred() != nullptr || out > most) {
        PyErr_Clear();
        throw PythonError(std::string(name) + ": expected a number from 0 to " + std::to_string(most) +
                          ", found " + found);
    }
    return out;
}

std::string path_of(const py::object& path) {
    PyObject* text = PyOS_FSPath(path.ptr());
    if (text == nullptr) {
        PyErr_Clear();
        throw PythonTypeError("path: expected a text or a path, found " +
                              py::repr(path).cast<std::string>());
    }
    return py::reinterpret_steal<py::object>(text).cast<std::string>();
}

std::uint64_t bytes_of(const py::object& size) {
    if (py::isinstance<py::str>(size)) return value_or_raise(parse_bytes(size.cast<std::string>()));
    return whole_of("bytes", size);
}

std::uint64_t count_of(const py::object& count) {
    if (py::isinstance<py::str>(count)) return value_or_raise(parse_count(count.cast<std::string>()));
    if (py::isinstance<py::float_>(count)) {  // 1e6
        double number = count.cast<double>();
        if (!(number >= 0 && number < 0x1p63) || number != std::floor(number))
            throw PythonError("count: expected a whole number of at least 0, found " +
                              py::repr(count).cast<std::string>());
        return static_cast<std::uint64_t>(number);
    }
    return whole_of("count", count);
}

CacheSpec cache_of(const py::object& cache) {
    if (py::isinstance<py::str>(cache))
        return value_or_raise(CacheSpec::parse(cache.cast<std::string>()));
    if (!py::isinstance<CacheSpec>(cache))
        throw PythonTypeError("cache: expected a Cache or a text such as \"32K:8:64\", found " +
                              py::repr(cache).cast<std::string>());
    return cache.cast<CacheSpec>();
}

}  // namespace revisit

PYBIND11_MODULE(revisit, module) {
    using namespace revisit;
    module.attr("__version__") = REVISIT_VERSION_STRING;
    module.doc() = "How programs reuse memory: reuse distances, caches, traces made to measure.";
    py::object error = py::register_exception<PythonError>(module, "Error", PyExc_ValueError);
    static PyObject* type_error = nullptr;  // lives as long as the module
    py::tuple bases = py::make_tuple(error, py::handle(PyExc_TypeError));
    type_error = PyErr_NewException("revisit.ArgumentError", bases.ptr(), nullptr);
    module.attr("ArgumentError") = py::handle(type_error);
    py::register_exception_translator([](std::exception_ptr thrown) {
        try {
            if (thrown) std::rethrow_exception(thrown);
        } catch (const PythonTypeError& e) {
            PyErr_SetString(type_error, e.what());
        }
    });
    declare_profile(module);
    declare_arrays(module);
}
