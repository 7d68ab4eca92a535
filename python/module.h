// What the files of the Python module share.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <vector>

#include "revisit/revisit.h"

namespace revisit {

namespace py = pybind11;

// An Error of the library on its way to Python, where it is revisit.Error, a ValueError.
struct PythonError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// An argument of another type than expected: a revisit.Error, and a TypeError as Python's own are.
struct PythonTypeError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

template <class T>
T value_or_raise(Result<T>&& result) {
    if (!result) throw PythonError(result.error().sentence());
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// Hands a vector over to numpy: the array owns it, nothing is copied.
template <class T>
py::array_t<T> array_of(std::vector<T>&& values) {
    auto owned = std::make_unique<std::vector<T>>(std::move(values));
    const T* data = owned->data();
    auto count = static_cast<py::ssize_t>(owned->size());
    py::capsule owner(owned.get(), [](void* memory) { delete static_cast<std::vector<T>*>(memory); });
    owned.release();
    return py::array_t<T>(count, data, owner);
}

// A read-only look at memory that belongs to `owner`, which lives as long as the array does.
template <class T>
py::array_t<T> view_of(const std::vector<T>& values, py::handle owner) {
    py::array_t<T> array(static_cast<py::ssize_t>(values.size()), values.data(), owner);
    array.attr("setflags")(py::arg("write") = false);
    return array;
}

Binning parse_bins(const std::string& spec);
std::uint64_t bytes_of(const py::object& size);   // a number, or text as in "32K"
CacheSpec cache_of(const py::object& cache);      // a Cache, or text as in "32K:8:64"
std::uint64_t count_of(const py::object& count);  // a number, or text as in "10M"
std::string path_of(const py::object& path);      // text, or a pathlib.Path
// A whole number of Python or numpy up to `most`; anything else is refused, as "phases: expected …".
std::uint64_t whole_of(const char* name, const py::object& number,
                       std::uint64_t most = ~std::uint64_t{0});

void declare_profile(py::module_& module);  // profile.cpp: Histogram, Profile and what is in them
void declare_notebook(py::class_<Profile>& profile);  // notebook.cpp: pictures and frames
void declare_arrays(py::module_& module);             // arrays.cpp: analyze, generate, read_trace

}  // namespace revisit
