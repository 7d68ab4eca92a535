#!/usr/bin/env python3
# %% [markdown]
# # What would which cache do?
#
# A walk through `import revisit`, cell by cell: VS Code, Spyder and Jupytext run the `# %%` cells one at a
# time, python3 runs them all. Pictures are drawn by matplotlib where it is installed, and as SVG without.

# %% Three ways to walk over one array of 2 MiB, as addresses.
import pathlib
import sys

import numpy as np

import revisit

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
count = 1 << 18  # doubles
index = np.arange(count, dtype=np.uint64)
walks = {
    "by rows": np.tile(index, 4),
    "by columns": np.tile(index.reshape(512, 512).T.ravel(), 4),
    "by tiles of 64 KiB, four times each": np.repeat(index.reshape(32, -1), 4, axis=0).ravel(),
}

# %% Count. The addresses are read where they lie.
profiles = {name: revisit.analyze(places * 8) for name, places in walks.items()}
for name, profile in profiles.items():
    print(f"{name}: {profile!r}")

# %% Hit rates in two caches: one number a cache and walk.
for cache in ("L1=32K:8:64", "L2=256K:8:64"):
    for name, profile in profiles.items():
        print(f"{cache:14} {name:38} {profile.cache(cache).hit_rate:8.4%} hit")

# %% A histogram is a numpy array: which share of the reuses is within 64 KiB?
for name, profile in profiles.items():
    bins = profile.reuse.bins
    near = bins["count"][bins["high"] * profile.granularity <= 64 << 10].sum() / profile.reuse.finite
    print(f"{name:38} {near:8.4%} of the reuses within 64 KiB")

# %% Miss-ratio curves, all in one picture.
curves = {name: profile.miss_ratio_curve() for name, profile in profiles.items()}


def plot_with_matplotlib(path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4), layout="constrained")
    for name, curve in curves.items():
        axes.step(np.maximum(curve["blocks"], 1) * 64, curve["miss_rate"], where="post", label=name)
    axes.set(xscale="log", xlabel="cache size, bytes", ylabel="miss ratio", ylim=(0, None))
    axes.legend()
    figure.savefig(path)


def plot_as_svg(path):
    width, height, left, bottom = 800, 400, 60, 40
    most = max(curve["blocks"].max() for curve in curves.values()) * 2
    top = max(curve["miss_rate"].max() for curve in curves.values())

    def x(blocks):
        return left + (width - left - 10) * np.log2(np.maximum(blocks, 1)) / np.log2(most)

    def y(rate):
        return 10 + (height - bottom - 10) * (1 - rate / top)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{height}" fill="white"/>']
    for octave in range(0, int(np.log2(most)) + 1, 2):
        size = 64 << octave
        label = f"{size} B" if size < 1024 else f"{size >> 10} KiB" if size < 1 << 20 else f"{size >> 20} MiB"
        parts.append(f'<text x="{x(2.0 ** octave):.0f}" y="{height - 20}" text-anchor="middle">{label}</text>')
    for share in np.linspace(0, top, 5):
        parts.append(f'<line x1="{left}" x2="{width - 10}" y1="{y(share):.1f}" y2="{y(share):.1f}" stroke="#ddd"/>'
                     f'<text x="{left - 6}" y="{y(share) + 4:.1f}" text-anchor="end">{share:.1%}</text>')
    parts.append(f'<text x="{width / 2}" y="{height - 4}" text-anchor="middle">cache size; up: miss ratio</text>')
    for number, ((name, curve), colour) in enumerate(zip(curves.items(), ("#0b6", "#d33", "#36c"))):
        xs, ys = x(np.append(curve["blocks"], most)), y(np.append(curve["miss_rate"], curve["miss_rate"][-1]))
        steps = f"M{xs[0]:.1f} {ys[0]:.1f}" + "".join(f"H{a:.1f}V{b:.1f}" for a, b in zip(xs[1:], ys[1:]))
        parts.append(f'<path d="{steps}" fill="none" stroke="{colour}" stroke-width="2"/>'
                     f'<text x="{width - 20}" y="{30 + 18 * number}" fill="{colour}" text-anchor="end">{name}</text>')
    path.write_text("\n".join(parts + ["</svg>\n"]))


picture = folder / "miss-ratio-curves.svg"
try:
    plot_with_matplotlib(picture)
except ImportError:
    plot_as_svg(picture)
print(f"picture: {picture.name}")

# %% A twin: a trace with the same distances, made to measure, and the page of it to send on.
original = profiles["by columns"]
twin = revisit.analyze(revisit.generate(original))
print(f"the twin's histogram is the original's to S = {revisit.accuracy(original.reuse, twin.reuse):.3f}")
original.save(str(folder / "by-columns.json"))
