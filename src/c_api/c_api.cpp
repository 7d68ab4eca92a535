// The library for C.
//
// Handles are structs around the C++ values; histograms are handed out as pointers to those inside
// their profile. Whatever goes wrong becomes a status and a sentence that is kept per thread.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <memory>
#include <new>

#include "core/try.h"
#include "revisit.h"
#include "revisit/revisit.h"

using namespace revisit;

struct revisit_options {
    AnalyzeOptions value;
    bool has_rate = false, has_target_error = false;
};

struct revisit_analysis {
    Analysis value;
    bool needs_threads;
};

struct revisit_profile {
    Profile value;
};

namespace {

std::string& last_error() {
    thread_local std::string message;
    return message;
}

revisit_status status_of(ErrorCode code) {
    switch (code) {
        case ErrorCode::invalid_input:
        case ErrorCode::option:
        case ErrorCode::no_cache:
        case ErrorCode::no_sites:
        case ErrorCode::no_phases:
        case ErrorCode::no_sharing:
        case ErrorCode::no_function:
        case ErrorCode::no_size:
        case ErrorCode::no_data:
            return REVISIT_INVALID_INPUT;
        case ErrorCode::unknown_format:
            return REVISIT_UNKNOWN_FORMAT;
        case ErrorCode::unknown_method:
            return REVISIT_UNKNOWN_METHOD;
        case ErrorCode::unsupported:
        case ErrorCode::no_formulas:
        case ErrorCode::not_recordable:
        case ErrorCode::not_sampling:
        case ErrorCode::not_instrumented:
            return REVISIT_UNSUPPORTED;
        case ErrorCode::not_built:
            return REVISIT_NOT_BUILT;
        case ErrorCode::no_memory:
            return REVISIT_NO_MEMORY;
        case ErrorCode::no_threads:
            return REVISIT_NO_THREADS;
        case ErrorCode::io:
            return REVISIT_IO;
        case ErrorCode::device:
            return REVISIT_DEVICE;
        case ErrorCode::device_memory:
            return REVISIT_DEVICE_MEMORY;
        case ErrorCode::cluster:
            return REVISIT_CLUSTER;
    }
    return REVISIT_INTERNAL;
}

revisit_status failed(revisit_status status, const char* message) noexcept {
    try {
        last_error() = message;
    } catch (...) {
    }
    return status;
}

// Runs `body() -> Result<void>`; no exception leaves it.
template <class Body>
revisit_status guarded(Body body) noexcept {
    try {
        if (const Result<void> done = body(); !done) {
            last_error() = done.error().sentence();
            return status_of(done.error().code);
        }
        return REVISIT_OK;
    } catch (const std::bad_alloc&) {
        return failed(REVISIT_NO_MEMORY, "not enough memory");
    } catch (const std::exception& thrown) {
        return failed(REVISIT_INTERNAL, thrown.what());
    } catch (...) {
        return failed(REVISIT_INTERNAL, "an unknown exception");
    }
}

Result<void> not_null(const void* pointer, const char* name) {
    if (pointer == nullptr) return fail(fmt::format("expected {}, found a null pointer", name));
    return {};
}

template <class T>
std::span<const T> column(const T* values, std::size_t count) {
    return values == nullptr ? std::span<const T>{} : std::span(values, count);
}

Result<std::uint64_t> number(std::string_view text, std::uint64_t most) {
    const std::uint64_t value = TRY(parse_count(text));
    if (value > most) return fail(fmt::format("expected at most {}, found {}", most, text));
    return value;
}

Result<bool> yes_or_no(std::string_view text) {
    if (text == "yes" || text == "true" || text == "1") return true;
    if (text == "no" || text == "false" || text == "0") return false;
    return fail(fmt::format("expected yes or no, found \"{}\"", text));
}

Result<void> set_model(EngineOptions& engine, std::string_view model) {
    if (model != "single" && model != "shared" && model != "private" && model != "both")
        return fail(fmt::format("expected single, shared, private or both, found \"{}\"", model));
    const bool is_private = model == "private" || model == "both";
    engine.model = is_private ? StackModel::private_ : StackModel::single;
    engine.shared = model == "both";
    return {};
}

Result<void> set_option(AnalyzeOptions& options, std::string_view name, std::string_view value) {
    EngineOptions& engine = options.engine;
    if (name == "method") {
        for (const EngineEntry& entry : engines())
            if (entry.name == value) {
                options.method = value;
                return {};
            }
        return fail(ErrorCode::unknown_method, fmt::format("there is no method \"{}\"", value));
    }
    if (name == "model") return set_model(engine, value);
    if (name == "granularity") {
        engine.granularity = TRY(parse_bytes(value));
        if (engine.granularity == 0) return fail("expected at least 1 byte");
    } else if (name == "bins") {
        engine.bins = TRY(Binning::parse(value));
    } else if (name == "threads") {
        engine.threads = static_cast<unsigned>(TRY(number(value, 4096)));
    } else if (name == "phases") {
        engine.phases = static_cast<unsigned>(TRY(number(value, 4096)));
    } else if (name == "seed") {
        engine.seed = TRY(number(value, ~std::uint64_t{0}));
    } else if (name == "time") {
        engine.time = TRY(yes_or_no(value));
    } else if (name == "sites") {
        engine.sites = TRY(yes_or_no(value));
    } else if (name == "pairs") {
        engine.pairs = TRY(yes_or_no(value));
    } else if (name == "rate") {
        engine.sample.rate = engine.shards.rate = TRY(parse_share(value));
    } else if (name == "target-error") {
        engine.sample.target_error = TRY(parse_share(value));
    } else {
        return fail(fmt::format("there is no option \"{}\"", name));
    }
    return {};
}

const Histogram* value_of(const revisit_histogram* histogram) {
    return reinterpret_cast<const Histogram*>(histogram);
}
const revisit_histogram* handle_of(const Histogram& histogram) {
    return reinterpret_cast<const revisit_histogram*>(&histogram);
}

// What was asked for, where the method uses it: an option without effect would mislead.
Result<AnalyzeOptions> options_of(const revisit_options* options) {
    if (options == nullptr) return AnalyzeOptions{};
    const std::string& method = options->value.method;
    if (options->has_rate && method != "sample" && method != "shards")
        return fail(fmt::format(
            "option rate: belongs to the methods sample and shards; {} does not use it", method));
    if (options->has_target_error && method != "sample")
        return fail(fmt::format("option target-error: belongs to the method sample; {} does not use it",
                                method));
    return options->value;
}

void hand_out(Profile value, revisit_profile** profile) {
    *profile = new revisit_profile{std::move(value)};
}

}  // namespace

extern "C" {

const char* revisit_error_message(void) {
    return last_error().c_str();
}
uint32_t revisit_version(void) {
    return REVISIT_VERSION_NUMBER;
}
const char* revisit_version_string(void) {
    return REVISIT_VERSION_STRING;
}

revisit_options* revisit_options_new(void) {
    return new (std::nothrow) revisit_options;
}
void revisit_options_free(revisit_options* options) {
    delete options;
}
revisit_status revisit_options_set(revisit_options* options, const char* name, const char* value) {
    return guarded([&]() -> Result<void> {
        TRY(not_null(options, "options"));
        TRY(not_null(name, "the name of an option"));
        TRY(not_null(value, "the value of an option"));
        AnalyzeOptions changed = options->value;
        if (auto set = set_option(changed, name, value); !set) {
            set.error().message = fmt::format("option {}: {}", name, set.error().message);
            return set;
        }
        options->value = std::move(changed);
        options->has_rate = options->has_rate || std::string_view(name) == "rate";
        options->has_target_error =
            options->has_target_error || std::string_view(name) == "target-error";
        return {};
    });
}

revisit_status revisit_analysis_new(const revisit_options* options, revisit_analysis** analysis) {
    return guarded([&]() -> Result<void> {
        TRY(not_null(analysis, "where to put the analysis"));
        const AnalyzeOptions how = TRY(options_of(options));
        *analysis =
            new revisit_analysis{TRY(Analysis::begin(how)), how.engine.model == StackModel::private_};
        return {};
    });
}
void revisit_analysis_free(revisit_analysis* analysis) {
    delete analysis;
}

revisit_status revisit_analysis_add(revisit_analysis* analysis, const revisit_batch* batch) {
    return guarded([&]() -> Result<void> {
        TRY(not_null(analysis, "an analysis"));
        TRY(not_null(batch, "a batch"));
        if (batch->count == 0) return {};
        TRY(not_null(batch->addresses, "addresses"));
        if (analysis->needs_threads)
            TRY(not_null(batch->threads, "threads, which the private model needs"));
        return analysis->value.add(
            {column(batch->addresses, batch->count), column(batch->sites, batch->count),
             column(batch->sizes, batch->count), column(batch->threads, batch->count),
             column(batch->flags, batch->count)});
    });
}
revisit_status revisit_analysis_add_addresses(revisit_analysis* analysis, const uint64_t* addresses,
                                              size_t count) {
    const revisit_batch batch{count, addresses, nullptr, nullptr, nullptr, nullptr};
    return revisit_analysis_add(analysis, &batch);
}
revisit_status revisit_analysis_finish(revisit_analysis* analysis, revisit_profile** profile) {
    return guarded([&]() -> Result<void> {
        TRY(not_null(analysis, "an analysis"));
        TRY(not_null(profile, "where to put the profile"));
        hand_out(TRY(analysis->value.finish()), profile);
        return {};
    });
}
revisit_status revisit_analyze_file(const char* path, const char* format,
                                    const revisit_options* options, revisit_profile** profile) {
    return guarded([&]() -> Result<void> {
        TRY(not_null(path, "a path"));
        TRY(not_null(profile, "where to put the profile"));
        const AnalyzeOptions how = TRY(options_of(options));
        const auto trace = TRY(open_trace(path, format != nullptr ? format : "", how.engine.threads));
        hand_out(TRY(analyze(*trace, how)), profile);
        return {};
    });
}

revisit_status revisit_profile_load(const char* path, revisit_profile** profile) {
    return guarded([&]() -> Result<void> {
        TRY(not_null(path, "a path"));
        TRY(not_null(profile, "where to put the profile"));
        hand_out(TRY(load_profile(path)), profile);
        return {};
    });
}
revisit_status revisit_profile_save(const revisit_profile* profile, const char* path) {
    return guarded([&]() -> Result<void> {
        TRY(not_null(profile, "a profile"));
        TRY(not_null(path, "a path"));
        return save_profile(profile->value, path);
    });
}
revisit_status revisit_profile_from_json(const char* text, size_t length, revisit_profile** profile) {
    return guarded([&]() -> Result<void> {
        TRY(not_null(text, "a text"));
        TRY(not_null(profile, "where to put the profile"));
        hand_out(TRY(profile_from_json({text, length})), profile);
        return {};
    });
}
revisit_status revisit_profile_to_json(const revisit_profile* profile, char** text) {
    return guarded([&]() -> Result<void> {
        TRY(not_null(profile, "a profile"));
        TRY(not_null(text, "where to put the text"));
        const std::string json = to_json(profile->value);
        char* copy = new char[json.size() + 1];
        std::memcpy(copy, json.c_str(), json.size() + 1);
        *text = copy;
        return {};
    });
}
void revisit_text_free(char* text) {
    delete[] text;
}
revisit_status revisit_profile_merge(revisit_profile* into, const revisit_profile* other) {
    return guarded([&]() -> Result<void> {
        TRY(not_null(into, "a profile"));
        TRY(not_null(other, "a profile to add"));
        if (into == other) return merge_profile(into->value, Profile(other->value));
        return merge_profile(into->value, other->value);
    });
}
void revisit_profile_free(revisit_profile* profile) {
    delete profile;
}

double revisit_profile_accesses(const revisit_profile* profile) {
    return profile != nullptr ? profile->value.accesses : 0;
}
double revisit_profile_distinct(const revisit_profile* profile) {
    return profile != nullptr ? profile->value.distinct : 0;
}
uint64_t revisit_profile_granularity(const revisit_profile* profile) {
    return profile != nullptr ? profile->value.granularity : 0;
}
const char* revisit_profile_method(const revisit_profile* profile) {
    return profile != nullptr ? profile->value.method.c_str() : "";
}
const char* revisit_profile_model(const revisit_profile* profile) {
    return profile != nullptr ? profile->value.model.c_str() : "";
}

const revisit_histogram* revisit_profile_histogram(const revisit_profile* profile, revisit_kind kind) {
    if (profile == nullptr) return nullptr;
    const Profile& value = profile->value;
    switch (kind) {
        case REVISIT_REUSE:
            return handle_of(value.reuse);
        case REVISIT_TIME:
            return value.time ? handle_of(*value.time) : nullptr;
        case REVISIT_SHARED:
            return value.shared ? handle_of(*value.shared) : nullptr;
    }
    return nullptr;
}
double revisit_histogram_cold(const revisit_histogram* histogram) {
    return histogram != nullptr ? value_of(histogram)->cold : 0;
}
double revisit_histogram_invalidated(const revisit_histogram* histogram) {
    return histogram != nullptr ? value_of(histogram)->invalidated : 0;
}
double revisit_histogram_percentile(const revisit_histogram* histogram, double share) {
    if (histogram == nullptr || !(share >= 0 && share <= 1)) return std::nan("");
    return value_of(histogram)->percentile(share);
}
size_t revisit_histogram_bins(const revisit_histogram* histogram, revisit_bin* bins, size_t room) {
    if (histogram == nullptr) return 0;
    const std::vector<Bin>& all = value_of(histogram)->bins;
    for (size_t i = 0; bins != nullptr && i < std::min(room, all.size()); ++i)
        bins[i] = {all[i].low, all[i].high, all[i].count, all[i].error};
    return all.size();
}

size_t revisit_profile_curve(const revisit_profile* profile, revisit_point* points, size_t room) {
    size_t count = 0;
    guarded([&]() -> Result<void> {
        if (profile == nullptr) return {};
        const std::vector<CurvePoint> curve = miss_ratio_curve(profile->value.reuse);
        for (size_t i = 0; points != nullptr && i < std::min(room, curve.size()); ++i)
            points[i] = {curve[i].blocks, curve[i].miss_rate};
        count = curve.size();
        return {};
    });
    return count;
}
revisit_status revisit_profile_hit_rate(const revisit_profile* profile, const char* cache,
                                        double* hit_rate, double* error) {
    return guarded([&]() -> Result<void> {
        TRY(not_null(profile, "a profile"));
        TRY(not_null(cache, "a cache"));
        TRY(not_null(hit_rate, "where to put the hit rate"));
        const CachePrediction prediction = predict_cache(profile->value, TRY(CacheSpec::parse(cache)));
        *hit_rate = prediction.hit_rate;
        if (error != nullptr) *error = prediction.error;
        return {};
    });
}
size_t revisit_profile_sites(const revisit_profile* profile, revisit_site* sites, size_t room) {
    if (profile == nullptr) return 0;
    const std::vector<Site>& all = profile->value.sites;
    for (size_t i = 0; sites != nullptr && i < std::min(room, all.size()); ++i)
        sites[i] = {all[i].id, all[i].accesses, all[i].writes, handle_of(all[i].reuse)};
    return all.size();
}

}  // extern "C"
