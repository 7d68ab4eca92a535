// What a notebook shows of a profile: its figures and the miss-ratio curve as SVG, and tables of sites
// and pairs for pandas and polars, where those are installed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "module.h"

namespace revisit {
namespace {

constexpr double kWidth = 560, kHeight = 240, kLeft = 44, kRight = 10, kTop = 10, kBottom = 34;

std::string escaped(std::string_view text) {
    std::string out;
    for (char c : text) {
        if (c == '<')
            out += "&lt;";
        else if (c == '>')
            out += "&gt;";
        else if (c == '&')
            out += "&amp;";
        else
            out += c;
    }
    return out;
}

// Miss ratio over cache size, which grows by powers of two to the right.
std::string curve_svg(const Profile& profile) {
    const std::vector<CurvePoint> curve = miss_ratio_curve(profile.reuse);
    if (curve.size() < 2) return {};
    const double block = static_cast<double>(profile.granularity);
    auto exponent = [&](double blocks) { return std::log2(std::max(blocks, 0.5) * block); };
    const double low = exponent(0), high = std::max(exponent(curve.back().blocks), low + 1);
    auto x = [&](double at) { return kLeft + (at - low) / (high - low) * (kWidth - kLeft - kRight); };
    auto y = [&](double ratio) { return kTop + (1 - ratio) * (kHeight - kTop - kBottom); };
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
        "{1}\" "
        "font-family=\"sans-serif\" font-size=\"11\" fill=\"currentColor\" role=\"img\">"
        "<title>miss-ratio curve</title>",
        kWidth, kHeight);
    for (double ratio : {0.0, 0.25, 0.5, 0.75, 1.0})
        out += fmt::format(
            "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"currentColor\" "
            "stroke-opacity=\"0.15\"/><text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.0f} %</text>",
            kLeft, kWidth - kRight, y(ratio), y(ratio), kLeft - 4, y(ratio) + 4, 100 * ratio);
    const double step = std::max(1.0, std::ceil((high - low) / 8));
    for (double at = std::ceil(low); at <= high; at += step)
        out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>", x(at),
                           kHeight - kBottom + 16, format_bytes(std::exp2(at)));
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">cache size</text>",
                       (kLeft + kWidth - kRight) / 2, kHeight - 4);
    out += "<polyline fill=\"none\" stroke=\"#1f77b4\" stroke-width=\"2\" points=\"";
    for (const CurvePoint& point : curve)
        out += fmt::format("{:.1f},{:.1f} ", x(exponent(point.blocks)), y(point.miss_rate));
    return out + "\"/></svg>";
}

std::string html(const Profile& profile) {
    std::string rows;
    auto row = [&](std::string_view name, const std::string& value) {
        rows += fmt::format("<tr><th style=\"text-align:left\">{}</th><td>{}</td></tr>", name,
                            escaped(value));
    };
    row("accesses", format_count(profile.accesses));
    row("blocks", fmt::format("{} of {}", format_count(profile.distinct),
                              format_bytes(static_cast<double>(profile.granularity))));
    row("method", profile.method + (profile.model == "single" ? "" : ", " + profile.model + " stacks"));
    if (profile.reuse.finite() > 0)
        row("median distance",
            format_bytes(profile.reuse.percentile(0.5) * static_cast<double>(profile.granularity)));
    if (profile.sampled) row("samples", format_count(profile.sampled->samples));
    return fmt::format("<div><table>{}</table>{}</div>", rows, curve_svg(profile));
}

// pandas, else polars; or the one that was asked for.
py::object frame_of(const py::dict& columns, const py::object& library) {
    std::vector<std::string> names = {"pandas", "polars"};
    if (!library.is_none()) names = {library.cast<std::string>()};
    if (names[0] != "pandas" && names[0] != "polars")
        throw PythonError("library: expected pandas or polars, found \"" + names[0] + "\"");
    for (const std::string& name : names) {
        try {
            return py::module_::import(name.c_str()).attr("DataFrame")(columns);
        } catch (py::error_already_set& missing) {
            if (!missing.matches(PyExc_ImportError)) throw;
        }
    }
    throw PythonError("a frame needs " + (names.size() > 1 ? "pandas or polars" : names[0]) +
                      ", which is not installed");
}

// A place and its code, over a list of sites.
void put_place(py::dict& columns, const std::string& prefix, const std::vector<const Site*>& sites) {
    py::list function, file, line;
    for (const Site* site : sites) {
        function.append(site != nullptr ? site->frame.function : "");
        file.append(site != nullptr ? site->frame.file : "");
        line.append(site != nullptr ? site->frame.line : 0);
    }
    columns[py::str(prefix + "function")] = function;
    columns[py::str(prefix + "file")] = file;
    columns[py::str(prefix + "line")] = line;
}

py::object median_of(const Histogram& histogram) {
    if (histogram.finite() <= 0) return py::none();
    return py::float_(histogram.percentile(0.5));
}

py::dict site_columns(const Profile& profile) {
    py::dict columns;
    py::list id, module, offset, data, accesses, writes, cold, invalidated, median, time_share, regular;
    std::vector<const Site*> sites;
    for (const Site& site : profile.sites) {
        sites.push_back(&site);
        id.append(site.id);
        module.append(site.module);
        offset.append(site.offset);
        data.append(site.data);
        accesses.append(site.accesses);
        writes.append(site.writes);
        cold.append(site.reuse.cold);
        invalidated.append(site.reuse.invalidated);
        median.append(median_of(site.reuse));
        time_share.append(site.time_share);
        regular.append(site.regular);
    }
    columns["site"] = id;
    put_place(columns, "", sites);
    columns["module"] = module;
    columns["offset"] = offset;
    columns["data"] = data;
    columns["accesses"] = accesses;
    columns["writes"] = writes;
    columns["cold"] = cold;
    columns["invalidated"] = invalidated;
    columns["median_distance"] = median;
    columns["time_share"] = time_share;
    columns["regular"] = regular;
    return columns;
}

py::dict pair_columns(const Profile& profile) {
    std::map<std::uint32_t, const Site*> by_id;
    for (const Site& site : profile.sites) by_id[site.id] = &site;
    auto site_of = [&](std::uint32_t id) {
        auto found = by_id.find(id);
        return found == by_id.end() ? nullptr : found->second;
    };
    py::list use, reuse, count, median;
    std::vector<const Site*> uses, reuses;
    for (const Pair& pair : profile.pairs) {
        use.append(pair.use);
        reuse.append(pair.reuse);
        uses.push_back(site_of(pair.use));
        reuses.push_back(site_of(pair.reuse));
        count.append(pair.count);
        median.append(median_of(pair.distances));
    }
    py::dict columns;
    columns["use"] = use;
    columns["reuse"] = reuse;
    put_place(columns, "use_", uses);
    put_place(columns, "reuse_", reuses);
    columns["count"] = count;
    columns["median_distance"] = median;
    return columns;
}

}  // namespace

void declare_notebook(py::class_<Profile>& profile) {
    profile.def("_repr_html_", &html, "figures and the miss-ratio curve, for notebooks")
        .def("curve_svg", &curve_svg, "the miss-ratio curve as an SVG picture")
        .def(
            "sites_frame",
            [](const Profile& self, const py::object& library) {
                return frame_of(site_columns(self), library);
            },
            py::arg("library") = py::none(),
            "the sites as a DataFrame of pandas, or of polars where that is installed or asked for")
        .def(
            "pairs_frame",
            [](const Profile& self, const py::object& library) {
                return frame_of(pair_columns(self), library);
            },
            py::arg("library") = py::none(), "the use → reuse pairs as a DataFrame");
}

}  // namespace revisit
