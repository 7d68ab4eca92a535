// Profiles and what is in them, as Python sees them: read-only, so that arrays over their memory stay
// true for as long as somebody holds them.
#include <fmt/format.h>

#include <algorithm>

#include "core/files.h"
#include "module.h"
#include "report/page.h"
#include "report/terminal.h"

namespace revisit {
namespace {

// A profile without the cache's lines answers a question that was not asked: a warning says so.
void warn_of_blocks(const Profile& profile, const CacheSpec& cache) {
    const bool has_lines = profile.granularity == cache.line ||
                           std::any_of(profile.granularities.begin(), profile.granularities.end(),
                                       [&](const auto& one) { return one.granularity == cache.line; });
    if (has_lines) return;
    const std::string text = fmt::format(
        "the profile counts blocks of {} B; each block is assumed to fill one line of {} B of the "
        "cache",
        profile.granularity, cache.line);
    if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 2) != 0) throw py::error_already_set();
}

py::array_t<double> hit_rates(const Profile& profile, const py::iterable& sizes,
                              const py::object& given_ways, const py::object& given_line) {
    const std::uint64_t ways = whole_of("ways", given_ways), line = bytes_of(given_line);
    if (line == 0) throw PythonError("expected lines of at least 1 byte");
    std::vector<CacheSpec> caches;
    for (py::handle size : sizes)
        caches.push_back({bytes_of(py::reinterpret_borrow<py::object>(size)), ways, line, {}});
    if (!caches.empty()) warn_of_blocks(profile, caches[0]);
    std::vector<double> rates;
    {
        py::gil_scoped_release counting;
        for (const CacheSpec& cache : caches)
            rates.push_back(cache.blocks() == 0 ? 0 : predict_cache(profile, cache).hit_rate);
    }
    return array_of(std::move(rates));
}

Profile merged(const Profile& one, const Profile& other) {
    Profile sum = one;
    value_or_raise(merge_profile(sum, other));
    return sum;
}

void write_page(const Profile& profile, const py::object& path, const py::iterable& caches,
                const std::string& title, bool sources) {
    PageOptions options;
    for (py::handle cache : caches)
        options.caches.push_back(cache_of(py::reinterpret_borrow<py::object>(cache)));
    if (options.caches.empty()) {
        options.caches = host_caches();
        options.caches_are_hosts = true;
    }
    options.sources = sources;
    std::string page = value_or_raise(html_page({{profile, title}}, options));
    value_or_raise(write_file(path_of(path), page));
}

void declare_histogram(py::module_& module) {
    PYBIND11_NUMPY_DTYPE(Bin, low, high, count, error);
    PYBIND11_NUMPY_DTYPE(CurvePoint, blocks, miss_rate);
    py::class_<Histogram>(module, "Histogram", "Distances in bins, infinite ones beside them.")
        .def_readonly("cold", &Histogram::cold, "first touches")
        .def_readonly("invalidated", &Histogram::invalidated, "reuses lost to another thread's write")
        .def_readonly("cold_error", &Histogram::cold_error)
        .def_readonly("invalidated_error", &Histogram::invalidated_error)
        .def_property_readonly("finite", &Histogram::finite, "the sum of the bins")
        .def_property_readonly("total", &Histogram::total)
        .def_property_readonly(
            "bins", [](py::object self) { return view_of(self.cast<const Histogram&>().bins, self); },
            "a structured array over the histogram's own memory: low, high (excluded), count, error")
        .def(
            "percentile",
            [](const Histogram& histogram, const py::object& given) {
                const double share = PyFloat_AsDouble(given.ptr());
                if (PyErr_Occurred() != nullptr) {
                    PyErr_Clear();
                    throw PythonTypeError("percentile: expected a share from 0 to 1, found " +
                                          py::repr(given).cast<std::string>());
                }
                if (!(share >= 0 && share <= 1))
                    throw PythonError("percentile: expected a share from 0 to 1");
                return histogram.percentile(share);
            },
            py::arg("share"), "the distance below which that share of the finite reuses lies")
        .def(
            "rebin",
            [](const Histogram& histogram, const std::string& bins) {
                return histogram.rebin(parse_bins(bins));
            },
            py::arg("bins"), "folded into coarser bins: log2, log2:K, linear:W")
        .def(
            "miss_ratio_curve",
            [](const Histogram& histogram) { return array_of(miss_ratio_curve(histogram)); },
            "miss ratio of a fully associative cache at every size where it changes: a structured "
            "array of blocks and miss_rate")
        .def(
            "__eq__", [](const Histogram& a, const Histogram& b) { return a == b; }, py::is_operator())
        .def(py::pickle(
            [](const Histogram& h) {
                py::list bins;
                for (const Bin& bin : h.bins)
                    bins.append(
                        py::make_tuple(bin.low, bin.high, bin.count, bin.error, bin.beyond_error));
                return py::make_tuple(h.cold, h.invalidated, h.cold_error, h.invalidated_error, bins);
            },
            [](const py::tuple& state) {
                Histogram h{state[0].cast<double>(),
                            state[1].cast<double>(),
                            state[2].cast<double>(),
                            state[3].cast<double>(),
                            {}};
                for (py::handle item : state[4]) {
                    auto bin = item.cast<py::tuple>();
                    h.bins.push_back({bin[0].cast<std::uint64_t>(), bin[1].cast<std::uint64_t>(),
                                      bin[2].cast<double>(), bin[3].cast<double>(),
                                      bin[4].cast<double>()});
                }
                return h;
            }))
        .def("__repr__", [](const Histogram& histogram) {
            return fmt::format("<revisit.Histogram of {} reuses in {} bins, {} cold>",
                               format_count(histogram.finite()), histogram.bins.size(),
                               format_count(histogram.cold));
        });
}

void declare_caches(py::module_& module) {
    py::class_<CacheSpec>(module, "Cache", "A cache, out of NAME=SIZE:WAYS:LINE or SIZE:WAYS:LINE.")
        .def(py::init([](const std::string& spec) { return value_or_raise(CacheSpec::parse(spec)); }),
             py::arg("spec"))
        .def_readonly("name", &CacheSpec::name)
        .def_readonly("bytes", &CacheSpec::bytes)
        .def_readonly("line", &CacheSpec::line)
        .def_property_readonly("ways", &CacheSpec::associativity)
        .def_property_readonly("blocks", &CacheSpec::blocks)
        .def(
            "__eq__",
            [](const CacheSpec& a, const CacheSpec& b) {
                return a.bytes == b.bytes && a.ways == b.ways && a.line == b.line && a.name == b.name;
            },
            py::is_operator())
        .def(py::pickle(
            [](const CacheSpec& cache) {
                return py::make_tuple(cache.bytes, cache.ways, cache.line, cache.name);
            },
            [](const py::tuple& state) {
                return CacheSpec{state[0].cast<std::uint64_t>(), state[1].cast<std::uint64_t>(),
                                 state[2].cast<std::uint64_t>(), state[3].cast<std::string>()};
            }))
        .def("__repr__", [](const CacheSpec& cache) {
            return fmt::format("<revisit.Cache {}: {}, {} ways, lines of {} B>", cache.name,
                               format_bytes(static_cast<double>(cache.bytes)), cache.associativity(),
                               cache.line);
        });
    py::class_<CachePrediction>(module, "CachePrediction")
        .def_readonly("cache", &CachePrediction::cache)
        .def_readonly("hit_rate", &CachePrediction::hit_rate)
        .def_readonly("miss_rate", &CachePrediction::miss_rate)
        .def_readonly("error", &CachePrediction::error, "95 % half-width; 0 = an exact profile")
        .def("__repr__", [](const CachePrediction& prediction) {
            return fmt::format("<revisit.CachePrediction {}: hit rate {:.6f}>", prediction.cache.name,
                               prediction.hit_rate);
        });
    module.def("host_caches", &host_caches, "the data caches of this machine, nearest first");
}

void declare_parts(py::module_& module) {
    py::class_<Frame>(module, "Frame")
        .def_readonly("function", &Frame::function)
        .def_readonly("file", &Frame::file)
        .def_readonly("line", &Frame::line)
        .def("__repr__", [](const Frame& frame) {
            return fmt::format("<{} at {}:{}>", frame.function, frame.file, frame.line);
        });
    py::class_<Site>(module, "Site", "One instruction that accesses memory.")
        .def_readonly("id", &Site::id)
        .def_readonly("module", &Site::module)
        .def_readonly("offset", &Site::offset)
        .def_readonly("frame", &Site::frame)
        .def_readonly("inlined", &Site::inlined)
        .def_readonly("loop", &Site::loop)
        .def_readonly("data", &Site::data)
        .def_readonly("time_share", &Site::time_share)
        .def_readonly("regular", &Site::regular)
        .def_readonly("accesses", &Site::accesses)
        .def_readonly("writes", &Site::writes)
        .def_readonly("reuse", &Site::reuse)
        .def("__repr__", [](const Site& site) {
            return fmt::format("<revisit.Site {}: {} at {}:{}, {} accesses>", site.id,
                               site.frame.function, site.frame.file, site.frame.line,
                               format_count(site.accesses));
        });
    py::class_<Context>(module, "Context", "A node of the calling-context tree; 0 is the root.")
        .def_readonly("parent", &Context::parent)
        .def_readonly("module", &Context::module)
        .def_readonly("offset", &Context::offset)
        .def_readonly("frame", &Context::frame)
        .def("__repr__", [](const Context& context) {
            return fmt::format("<revisit.Context {} called from {}>", context.frame.function,
                               context.parent);
        });
    py::class_<Pair>(module, "Pair", "Use → reuse, by site ids.")
        .def_readonly("use", &Pair::use)
        .def_readonly("reuse", &Pair::reuse)
        .def_readonly("use_context", &Pair::use_context)
        .def_readonly("reuse_context", &Pair::reuse_context)
        .def_readonly("count", &Pair::count)
        .def_readonly("distances", &Pair::distances)
        .def("__repr__", [](const Pair& pair) {
            return fmt::format("<revisit.Pair {} to {}: {} reuses>", pair.use, pair.reuse,
                               format_count(pair.count));
        });
    py::class_<Object>(module, "Object", "A piece of data.")
        .def_readonly("kind", &Object::kind)
        .def_readonly("name", &Object::name)
        .def_readonly("bytes", &Object::bytes)
        .def_readonly("context", &Object::context)
        .def_readonly("accesses", &Object::accesses)
        .def_readonly("reuse", &Object::reuse)
        .def("__repr__", [](const Object& object) {
            return fmt::format("<revisit.Object {} {}: {} accesses>", object.kind, object.name,
                               format_count(object.accesses));
        });
    py::class_<ThreadProfile>(module, "ThreadProfile")
        .def_readonly("id", &ThreadProfile::id)
        .def_readonly("accesses", &ThreadProfile::accesses)
        .def_readonly("reuse", &ThreadProfile::reuse)
        .def("__repr__", [](const ThreadProfile& thread) {
            return fmt::format("<revisit.ThreadProfile {}: {} accesses>", thread.id,
                               format_count(thread.accesses));
        });
    py::class_<Phase>(module, "Phase", "A window of the run, in accesses.")
        .def_readonly("begin", &Phase::begin)
        .def_readonly("end", &Phase::end)
        .def_readonly("distinct", &Phase::distinct)
        .def_readonly("reuse", &Phase::reuse)
        .def("__repr__", [](const Phase& phase) {
            return fmt::format("<revisit.Phase of accesses {} to {}>", format_count(phase.begin),
                               format_count(phase.end));
        });
    py::class_<Sampling>(module, "Sampling")
        .def_readonly("period", &Sampling::period, "accesses per sample")
        .def_readonly("samples", &Sampling::samples)
        .def_readonly("pruned", &Sampling::pruned, "share of samples given up")
        .def_readonly("accesses_error", &Sampling::accesses_error,
                      "95 % half-width of the accesses; 0 where they were counted")
        .def_readonly("distinct_low", &Sampling::distinct_low,
                      "blocks that were touched, at least; 0 where that is not known")
        .def_readonly("distinct_high", &Sampling::distinct_high, "… at most")
        .def("__repr__", [](const Sampling& sampling) {
            return fmt::format("<revisit.Sampling of {} samples, one per {} accesses>",
                               format_count(sampling.samples), format_count(sampling.period));
        });
}

}  // namespace

void declare_profile(py::module_& module) {
    declare_histogram(module);
    declare_caches(module);
    declare_parts(module);
    py::class_<Profile> profile_class(module, "Profile",
                                      "What was counted; print() shows it as `revisit report` does.");
    declare_notebook(profile_class);
    profile_class.def_readonly("method", &Profile::method)
        .def_readonly("model", &Profile::model)
        .def_readonly("granularity", &Profile::granularity, "bytes per block")
        .def_readonly("accesses", &Profile::accesses)
        .def_readonly("distinct", &Profile::distinct, "blocks touched")
        .def_readonly("reuse", &Profile::reuse)
        .def_readonly("time", &Profile::time)
        .def_readonly("shared", &Profile::shared)
        .def_readonly("sampled", &Profile::sampled)
        .def_readonly("threads", &Profile::threads)
        .def_readonly("sites", &Profile::sites)
        .def_readonly("contexts", &Profile::contexts)
        .def_readonly("pairs", &Profile::pairs)
        .def_readonly("objects", &Profile::objects)
        .def_readonly("phases", &Profile::phases)
        .def_readonly("machine", &Profile::machine)
        .def_readonly("command", &Profile::command)
        .def_readonly("clock", &Profile::clock)
        .def_readonly("notes", &Profile::notes)
        .def_readonly("assumes", &Profile::assumes)
        .def_property_readonly("exact", &Profile::exact)
        .def_property_readonly(
            "certainty",
            [](const Profile& p) {
                return p.certainty ? std::optional(std::string(name_of(*p.certainty))) : std::nullopt;
            })
        .def(
            "cache",
            [](const Profile& profile, const py::object& cache) {
                const CacheSpec spec = cache_of(cache);
                warn_of_blocks(profile, spec);
                return predict_cache(profile, spec);
            },
            py::arg("cache"), "hit rate of a cache, e.g. \"32K:8:64\"")
        .def("hit_rates", &hit_rates, py::arg("sizes"), py::arg("ways") = 0, py::arg("line") = 64,
             "hit rates of caches of these sizes, numbers of bytes or text as in \"32K\"; ways 0 = "
             "fully "
             "associative")
        .def(
            "miss_ratio_curve",
            [](const Profile& profile) { return array_of(miss_ratio_curve(profile.reuse)); },
            "the miss-ratio curve of its reuse histogram")
        .def(
            "save",
            [](const Profile& profile, const py::object& path) {
                value_or_raise(save_profile(profile, path_of(path)));
            },
            py::arg("path"))
        .def("to_json", [](const Profile& profile) { return to_json(profile); })
        .def("write_page", &write_page, py::arg("path"), py::arg("caches") = py::tuple(),
             py::arg("title") = "profile", py::arg("sources") = false,
             "writes the report as one HTML page; caches: those to mark, else this machine's")
        .def("__add__", &merged, "two runs, ranks or processes together")
        .def(
            "__eq__",
            [](const Profile& one, const Profile& other) { return to_json(one) == to_json(other); },
            py::is_operator())
        .def(py::pickle([](const Profile& profile) { return py::str(to_json(profile)); },
                        [](const py::str& text) {
                            return value_or_raise(profile_from_json(text.cast<std::string>()));
                        }))
        .def("__str__",
             [](const Profile& profile) { return terminal_report(profile, host_caches(), {}); })
        .def("__repr__", [](const Profile& profile) {
            return fmt::format("<revisit.Profile of {} accesses to {} blocks of {} B, method {}>",
                               format_count(profile.accesses), format_count(profile.distinct),
                               profile.granularity, profile.method);
        });
    module.def(
        "load",
        [](const py::object& path) {
            const std::string name = path_of(path);
            py::gil_scoped_release reading;
            return value_or_raise(load_profile(name));
        },
        py::arg("path"), "reads a profile");
    module.def(
        "from_json", [](const std::string& text) { return value_or_raise(profile_from_json(text)); },
        py::arg("text"), py::call_guard<py::gil_scoped_release>(), "the profile in a text");
    module.def(
        "accuracy",
        [](const Histogram& truth, const Histogram& estimate) { return accuracy(truth, estimate); },
        py::arg("truth"), py::arg("estimate"),
        "S: 1 - half the sum of the differences of bins' shares");
}

}  // namespace revisit
