// Arrays in, arrays out: analyze, Analysis, generate, read_trace.
//
// uint64 and int64 arrays of addresses are read where they lie, as are uint32 sites and sizes, uint16
// threads and bool writes; an array of another integer type or with gaps is brought to that form by
// numpy, which is a copy.
#include <algorithm>
#include <limits>
#include <mutex>

#include "module.h"

namespace revisit {
namespace {

// A column as the engines want it, and the Python object that keeps it alive.
template <class T>
struct Column {
    py::object owner;
    std::span<const T> values;
};

template <class Raised = PythonError>
[[noreturn]] void refuse(const char* name, const std::string& why) {
    throw Raised(std::string(name) + ": " + why);
}

// Values that T cannot hold would be cut to other values.
template <class T>
void check_range(const char* name, const py::array& array) {
    if (array.size() == 0) return;
    py::object least = array.attr("min")(), most = array.attr("max")();
    constexpr T kMost = std::numeric_limits<T>::max();
    if (least.attr("__lt__")(0).template cast<bool>() ||
        most.attr("__gt__")(kMost).template cast<bool>())
        refuse(name, "expected values from 0 to " + std::to_string(kMost) + ", found " +
                         py::str(least.attr("__lt__")(0).template cast<bool>() ? least : most)
                             .cast<std::string>());
}

template <class T>
Column<T> column_of(const char* name, const py::object& given, std::ptrdiff_t expected) {
    if (given.is_none()) {
        if (expected < 0) refuse<PythonTypeError>(name, "expected an array of integers, found None");
        return {};
    }
    py::array array = py::array::ensure(given);
    if (!array) refuse<PythonTypeError>(name, "expected an array of integers");
    // Values that were masked out would be counted.
    if (py::hasattr(given, "mask") && py::array(given.attr("mask")).attr("any")().cast<bool>())
        refuse(name, "expected an array without masked values; compressed() leaves them out");
    if (array.ndim() != 1)
        refuse<PythonTypeError>(
            name, "expected an array of one dimension, found " + std::to_string(array.ndim()));
    char kind = array.dtype().kind();
    if (array.size() != 0 && kind != 'u' && kind != 'i')
        refuse<PythonTypeError>(
            name, "expected an array of integers, found " + py::str(array.dtype()).cast<std::string>());
    if (expected >= 0 && array.size() != expected)
        refuse(name, "expected as many as there are addresses (" + std::to_string(expected) +
                         "), found " + std::to_string(array.size()));
    // Signed or bool, the bytes of addresses are the same: look at them as they are.
    bool addresses = sizeof(T) == 8;
    bool as_it_lies = array.itemsize() == sizeof(T) && array.dtype().byteorder() != '>' &&
                      (array.flags() & py::array::c_style) && (addresses || kind != 'i');
    if (!addresses && !as_it_lies) check_range<T>(name, array);
    if (!as_it_lies)
        array = py::array_t < T, py::array::c_style | py::array::forcecast > ::ensure(array);
    if (!array) throw py::error_already_set();
    return {array, {static_cast<const T*>(array.data()), static_cast<std::size_t>(array.size())}};
}

// Truths, or numbers that are 0 or 1: a write is flag bit 0.
Column<std::uint8_t> writes_of(const py::object& given, std::ptrdiff_t expected) {
    if (given.is_none()) return {};
    py::array array = py::array::ensure(given);
    if (array && array.dtype().kind() == 'b')
        return column_of<std::uint8_t>("writes", array.attr("view")("uint8"), expected);
    auto column = column_of<std::uint8_t>("writes", given, expected);
    for (std::uint8_t write : column.values)
        if (write > 1) refuse("writes", "expected truths, or 0 and 1, found " + std::to_string(write));
    return column;
}

// A share that was given for a method that uses it; `otherwise` where none was given.
double share_of(const char* name, const py::object& given, double otherwise, const std::string& method,
                std::initializer_list<const char*> methods) {
    if (given.is_none()) return otherwise;
    std::string names;
    for (const char* one : methods) names += (names.empty() ? "" : " or ") + std::string(one);
    if (std::find(methods.begin(), methods.end(), method) == methods.end())
        refuse(name, "an option of the method " + names + "; " + method + " does not use it");
    const double share = PyFloat_AsDouble(given.ptr());
    if (PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        refuse<PythonTypeError>(name,
                                "expected a number, found " + py::repr(given).cast<std::string>());
    }
    if (!(share > 0 && share <= 1)) refuse(name, "expected a share above 0 and up to 1");
    return share;
}

// The arrays of a call.
struct Given {
    Column<std::uint64_t> addresses;
    Column<std::uint32_t> sites, sizes;
    Column<std::uint16_t> threads;
    Column<std::uint8_t> writes;

    AccessBatch batch() const {
        return {addresses.values, sites.values, sizes.values, threads.values, writes.values};
    }
    void check_threads(const std::string& model) const {
        if ((model == "private" || model == "both") && threads.values.empty() && batch().count() > 0)
            throw PythonError("model: " + model + " stacks need threads");
    }
};

Given given_columns(const py::object& addresses, const py::object& sites, const py::object& sizes,
                    const py::object& threads, const py::object& writes) {
    Given given;
    given.addresses = column_of<std::uint64_t>("addresses", addresses, -1);
    const auto count = static_cast<std::ptrdiff_t>(given.addresses.values.size());
    given.sites = column_of<std::uint32_t>("sites", sites, count);
    given.sizes = column_of<std::uint32_t>("sizes", sizes, count);
    given.threads = column_of<std::uint16_t>("threads", threads, count);
    given.writes = writes_of(writes, count);
    return given;
}

AnalyzeOptions options_of(const std::string& method, const py::object& granularity,
                          const std::string& bins, const std::string& model, bool sites, bool time,
                          bool pairs, const py::object& phases, const py::object& workers,
                          const py::object& rate, const py::object& target_error,
                          const py::object& time_model, const py::object& seed) {
    AnalyzeOptions how;
    how.method = method;
    EngineOptions& options = how.engine;
    options.bins = parse_bins(bins);
    options.granularity = bytes_of(granularity);
    if (options.granularity == 0) throw PythonError("granularity: expected at least 1");
    if (model == "private" || model == "both")
        options.model = StackModel::private_;
    else if (model != "single" && model != "shared")
        throw PythonError("model: expected single, shared, private or both, found \"" + model + "\"");
    options.shared = model == "both";
    options.sites = sites;
    options.pairs = pairs;
    if (pairs && !sites) throw PythonError("pairs: needs sites");
    options.phases = static_cast<unsigned>(whole_of("phases", phases, 4096));
    options.threads = static_cast<unsigned>(whole_of("workers", workers, 4096));
    options.time = time;
    options.sample.rate = options.shards.rate =
        share_of("rate", rate, options.sample.rate, method, {"sample", "shards"});
    options.sample.target_error =
        share_of("target_error", target_error, options.sample.target_error, method, {"sample"});
    if (!time_model.is_none()) {
        if (method != "time")
            throw PythonError("time_model: an option of the method time; " + method +
                              " does not use it");
        options.time_model = value_or_raise(parse_time_model(py::str(time_model).cast<std::string>()));
    }
    options.seed = whole_of("seed", seed);
    return how;
}

Profile analyze_arrays(const py::object& addresses, const std::string& method,
                       const py::object& granularity, const std::string& bins, const std::string& model,
                       const py::object& sites, const py::object& sizes, const py::object& threads,
                       const py::object& writes, bool time, bool pairs, const py::object& phases,
                       const py::object& workers, const py::object& rate,
                       const py::object& target_error, const py::object& time_model,
                       const py::object& seed) {
    const Given given = given_columns(addresses, sites, sizes, threads, writes);
    const AnalyzeOptions options =
        options_of(method, granularity, bins, model, !given.sites.values.empty(), time, pairs, phases,
                   workers, rate, target_error, time_model, seed);
    given.check_threads(model);
    py::gil_scoped_release counting;
    Profile profile = value_or_raise(analyze(given.batch(), options));
    profile.model = model;
    return profile;
}

// Arrays as they come. Where several threads of Python add, one waits for the other.
class ArrayAnalysis {
 public:
    ArrayAnalysis(const AnalyzeOptions& options, std::string model)
        : analysis_(value_or_raise(Analysis::begin(options))),
          sites_(options.engine.sites),
          model_(std::move(model)) {}

    void add(const py::object& addresses, const py::object& sites, const py::object& sizes,
             const py::object& threads, const py::object& writes) {
        const Given given = given_columns(addresses, sites, sizes, threads, writes);
        given.check_threads(model_);
        if (sites.is_none() == sites_ && given.batch().count() > 0)
            refuse("sites", sites_ ? "expected an array, for Analysis(sites=True)"
                                   : "not counted; make an Analysis(sites=True)");
        py::gil_scoped_release counting;
        std::lock_guard lock(guard_);
        value_or_raise(analysis_.add(given.batch()));
    }
    Profile finish() {
        py::gil_scoped_release counting;
        std::lock_guard lock(guard_);
        Profile profile = value_or_raise(analysis_.finish());
        profile.model = model_;
        return profile;
    }

 private:
    std::mutex guard_;
    Analysis analysis_;
    bool sites_;
    std::string model_;
};

// Columns grow batch by batch and are handed to numpy in the end. A column that a source leaves out is
// left out.
struct Columns {
    std::vector<std::uint64_t> addresses;
    std::vector<std::uint32_t> sites, sizes;
    std::vector<std::uint16_t> threads;
    std::vector<std::uint8_t> writes;

    void append(const AccessBatch& batch) {
        auto add = [](auto& to, auto from) { to.insert(to.end(), from.begin(), from.end()); };
        add(addresses, batch.addresses);
        add(sites, batch.sites);
        add(sizes, batch.sizes);
        add(threads, batch.threads);
        for (std::uint8_t flag : batch.flags) writes.push_back(flag & kWrite);
    }

    py::dict as_dict() && {
        py::dict columns;
        std::size_t count = addresses.size();
        columns["addresses"] = array_of(std::move(addresses));
        auto give = [&](const char* name, auto& values) {
            if (!values.empty() && values.size() == count) columns[name] = array_of(std::move(values));
        };
        give("sites", sites);
        give("sizes", sizes);
        give("threads", threads);
        if (!writes.empty() && writes.size() == count)
            columns["writes"] = array_of(std::move(writes)).attr("view")("bool");
        return columns;
    }
};

py::object generate(const py::object& like, const py::object& length, const py::object& distinct,
                    const py::object& granularity, const py::object& threads, double sharing,
                    double writes, const py::object& seed, bool columns) {
    GenerateOptions options;
    Histogram reuse;
    if (py::isinstance<Profile>(like)) {
        const auto& profile = like.cast<const Profile&>();
        options.length = static_cast<std::uint64_t>(profile.accesses);
        options.distinct = static_cast<std::uint64_t>(profile.distinct);
        options.granularity = profile.granularity;
        reuse = profile.reuse;
    } else if (length.is_none() || distinct.is_none()) {
        throw PythonError("a distribution needs length and distinct");
    }
    if (!length.is_none()) options.length = count_of(length);
    if (!distinct.is_none()) options.distinct = count_of(distinct);
    if (!granularity.is_none()) options.granularity = bytes_of(granularity);
    if (options.length < options.distinct)
        throw PythonError("length: fewer accesses than blocks to touch");
    if (py::isinstance<Histogram>(like))
        reuse = like.cast<const Histogram&>();
    else if (!py::isinstance<Profile>(like) && !py::isinstance<py::str>(like))
        throw PythonTypeError("expected a Profile, a Histogram or a distribution, found " +
                              py::repr(like).cast<std::string>());
    else if (!py::isinstance<Profile>(like))
        reuse = value_or_raise(parse_distribution(like.cast<std::string>(), options.distinct));
    if (reuse.invalidated > 0) throw PythonError("has invalidated reuses, which one stack cannot have");
    options.threads = static_cast<unsigned>(whole_of("threads", threads, 65536));
    options.sharing = sharing;
    options.writes = writes;
    options.seed = whole_of("seed", seed);
    Columns made;
    {
        py::gil_scoped_release generating;
        auto generator = value_or_raise(TraceGenerator::create(reuse, options));
        made.addresses.reserve(options.length);
        for (;;) {
            AccessBatch batch = generator.next();
            if (batch.count() == 0) break;
            if (columns)
                made.append(batch);
            else
                made.addresses.insert(made.addresses.end(), batch.addresses.begin(),
                                      batch.addresses.end());
        }
    }
    if (columns) return std::move(made).as_dict();
    return array_of(std::move(made.addresses));
}

py::dict read_trace(const py::object& given, const std::string& format) {
    const std::string path = path_of(given);
    Columns read;
    {
        py::gil_scoped_release reading;
        auto reader = value_or_raise(open_trace(path, format));
        for (;;) {
            AccessBatch batch = value_or_raise(reader->next());
            if (batch.count() == 0) break;
            read.append(batch);
        }
    }
    return std::move(read).as_dict();
}

}  // namespace

void declare_arrays(py::module_& module) {
    module.def(
        "analyze", &analyze_arrays, py::arg("addresses"), py::kw_only(), py::arg("method") = "exact",
        py::arg("granularity") = 64, py::arg("bins") = "log2:8", py::arg("model") = "single",
        py::arg("sites") = py::none(), py::arg("sizes") = py::none(), py::arg("threads") = py::none(),
        py::arg("writes") = py::none(), py::arg("time") = false, py::arg("pairs") = false,
        py::arg("phases") = 0, py::arg("workers") = 1, py::arg("rate") = py::none(),
        py::arg("target_error") = py::none(), py::arg("time_model") = py::none(), py::arg("seed") = 1,
        "Profiles an array of addresses; uint64 and int64 arrays are not copied.\n\n"
        "sites, sizes, threads and writes are optional arrays as long as addresses. workers are\n"
        "the threads that count, 0 = all cores. The other options are those of `revisit analyze`;\n"
        "rate, target_error and time_model belong to the methods sample and shards, sample, and time.");
    py::class_<ArrayAnalysis>(
        module, "Analysis",
        "An analysis of accesses that come array by array: add() them, then finish().")
        .def(py::init([](const std::string& method, const py::object& granularity,
                         const std::string& bins, const std::string& model, bool sites, bool time,
                         bool pairs, const py::object& phases, const py::object& workers,
                         const py::object& rate, const py::object& target_error,
                         const py::object& time_model, const py::object& seed) {
                 return std::make_unique<ArrayAnalysis>(
                     options_of(method, granularity, bins, model, sites, time, pairs, phases, workers,
                                rate, target_error, time_model, seed),
                     model);
             }),
             py::kw_only(), py::arg("method") = "exact", py::arg("granularity") = 64,
             py::arg("bins") = "log2:8", py::arg("model") = "single", py::arg("sites") = false,
             py::arg("time") = false, py::arg("pairs") = false, py::arg("phases") = 0,
             py::arg("workers") = 1, py::arg("rate") = py::none(), py::arg("target_error") = py::none(),
             py::arg("time_model") = py::none(), py::arg("seed") = 1)
        .def("add", &ArrayAnalysis::add, py::arg("addresses"), py::kw_only(),
             py::arg("sites") = py::none(), py::arg("sizes") = py::none(),
             py::arg("threads") = py::none(), py::arg("writes") = py::none(),
             "Counts these accesses after those before.")
        .def("finish", &ArrayAnalysis::finish, "The profile; nothing is added afterwards.");
    module.def(
        "methods",
        [] {
            py::dict names;
            for (const EngineEntry& entry : engines())
                names[py::str(std::string(entry.name))] = std::string(entry.summary);
            return names;
        },
        "the methods of analyze, with a summary of each");
    module.def(
        "generate", &generate, py::arg("like"), py::kw_only(), py::arg("length") = py::none(),
        py::arg("distinct") = py::none(), py::arg("granularity") = py::none(), py::arg("threads") = 1,
        py::arg("sharing") = 0.0, py::arg("writes") = 0.0, py::arg("seed") = 1,
        py::arg("columns") = false,
        "Addresses with the reuse distances of `like`: a Profile, a Histogram or a distribution as in\n"
        "`revisit generate`. With columns, a dict of arrays that analyze(**columns) takes.");
    module.def(
        "read_trace", &read_trace, py::arg("path"), py::arg("format") = "",
        "A trace in any format revisit reads, as a dict of arrays that analyze(**columns) takes.");
}

}  // namespace revisit
