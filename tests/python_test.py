"""import revisit: arrays in and out without copies, the same figures as the program, errors that help."""
import ast, copy, gc, importlib.util, json, os, pathlib, pickle, re, sys, tempfile, threading, types, unittest, unittest.mock, warnings
import xml.etree.ElementTree

import numpy as np

import revisit

DATA = pathlib.Path(__file__).parent / "golden" / "data"


def naive(blocks):
    """Reuse distances from a list kept in order of last use."""
    stack, distances = [], []
    for block in blocks:
        if block in stack:
            distances.append(len(stack) - 1 - stack.index(block))
            stack.remove(block)
        stack.append(block)
    return distances


class Analyze(unittest.TestCase):
    def test_counts_what_a_list_counts(self):
        random = np.random.default_rng(7)
        addresses = random.integers(0, 200, 3000).astype(np.uint64) * 64
        distances = np.array(naive((addresses // 64).tolist()))
        for method in ("exact", "olken", "naive", "partition"):
            profile = revisit.analyze(addresses, method=method, bins="exact")
            bins = profile.reuse.bins
            values, counts = np.unique(distances, return_counts=True)
            np.testing.assert_array_equal(bins["low"], values)
            np.testing.assert_array_equal(bins["count"], counts)
            self.assertEqual(profile.accesses, 3000)
            self.assertEqual(profile.reuse.cold, profile.distinct)

    def test_other_integer_arrays_count_the_same(self):
        wide = np.arange(10000, dtype=np.uint64) % 700 * 64
        expected = revisit.analyze(wide).reuse
        for given in (wide.astype(np.int64), wide.astype(np.uint32), wide.astype(">u8"), np.repeat(wide, 2)[::2], wide.tolist()):
            self.assertEqual(revisit.analyze(given).reuse, expected)

    def test_empty(self):
        profile = revisit.analyze(np.array([], dtype=np.uint64))
        self.assertEqual((profile.accesses, len(profile.reuse.bins), len(profile.miss_ratio_curve())), (0, 0, len(profile.reuse.miss_ratio_curve())))

    def test_columns(self):
        columns = revisit.read_trace(str(DATA / "threads.csv"))
        profile = revisit.analyze(**columns, model="private")
        self.assertGreater(profile.reuse.invalidated, 0)
        self.assertGreater(len(profile.threads), 1)
        self.assertEqual(revisit.analyze(columns["addresses"]).reuse.invalidated, 0)

    def test_sites_pairs_phases(self):
        columns = revisit.read_trace(str(DATA / "small.csv"))
        profile = revisit.analyze(columns["addresses"], sites=columns["sites"], pairs=True)
        self.assertEqual(sum(site.accesses for site in profile.sites), profile.accesses)
        self.assertEqual(sum(pair.count for pair in profile.pairs), profile.reuse.finite)
        phased = revisit.analyze(columns["addresses"], phases=4)
        self.assertEqual(sum(phase.reuse.total for phase in phased.phases), phased.reuse.total)

    def test_arrays_one_after_the_other_count_as_one(self):
        for file, options in (("threads", {}), ("threads", {"model": "both"}), ("small", {"workers": 3}),
                              ("small", {"sites": True, "pairs": True})):
            columns = revisit.read_trace(str(DATA / f"{file}.csv"))
            given = {name: column for name, column in columns.items() if name != "sites" or options.get("sites")}
            count = len(given["addresses"])
            analysis = revisit.Analysis(**options)
            for at in range(0, count, 7):
                analysis.add(**{name: column[at : at + 7] for name, column in given.items()})
            analysis.add([])
            whole = {name: value for name, value in options.items() if name != "sites"}
            self.assertEqual(analysis.finish(), revisit.analyze(**given, **whole))
            with self.assertRaisesRegex(revisit.Error, "finished already"):
                analysis.finish()
            with self.assertRaisesRegex(revisit.Error, "finished already"):
                analysis.add(**given)

    def test_threads_that_add_to_one_analysis_wait_for_each_other(self):
        analysis = revisit.Analysis()
        rows = [np.arange(200000, dtype=np.uint64) * 64 + (k << 40) for k in range(4)]
        threads = [threading.Thread(target=analysis.add, args=(row,)) for row in rows]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        profile = analysis.finish()
        self.assertEqual((profile.accesses, profile.distinct), (800000, 800000))

    def test_errors_are_sentences(self):
        some = np.arange(10, dtype=np.uint64)
        for wrong, words in (
            (lambda: revisit.analyze(some, method="guess"), "expected a method out of"),
            (lambda: revisit.analyze(some, bins="log3"), "log3"),
            (lambda: revisit.analyze(some, sites=np.arange(3, dtype=np.uint32)), "sites: expected as many"),
            (lambda: revisit.analyze(some, model="public"), "model: expected"),
            (lambda: revisit.analyze(some, granularity=0), "granularity"),
            (lambda: revisit.load("/nowhere/p.json"), "/nowhere/p.json"),
            (lambda: revisit.from_json('{"schema": "revisit/profile@9"}'), "revisit/profile@"),
            (lambda: revisit.Cache("32K"), "32K"),
            (lambda: revisit.generate("zipf:1"), "length and distinct"),
            (lambda: revisit.generate("gauss", length=10, distinct=2), "gauss"),
            (lambda: revisit.analyze(None), "addresses: expected an array of integers, found None"),
            (lambda: revisit.analyze(np.array([1.5, 2.5])), "addresses: .* found float64"),
            (lambda: revisit.analyze(some.reshape(2, 5)), "addresses: .* one dimension, found 2"),
            (lambda: revisit.analyze(some, granularity=-1), "bytes: expected a number from 0 .*, found -1"),
            (lambda: revisit.analyze(some, granularity=6.5), "bytes: expected a whole number, found 6.5"),
            (lambda: revisit.analyze(some, granularity=True), "whole number, found True"),
            (lambda: revisit.analyze(some > 3), "addresses: .* found bool"),
            (lambda: revisit.analyze(np.ma.masked_less(some, 3)), "addresses: .* masked"),
            (lambda: revisit.analyze(some, writes=["r", "w"] * 5), "writes: .* found <U1"),
            (lambda: revisit.analyze(some, writes=some), "writes: .* found 2"),
            (lambda: revisit.analyze(some, phases=-1), "phases: .* found -1"),
            (lambda: revisit.analyze(some, workers=10**6), "workers: .* to 4096"),
            (lambda: revisit.analyze(some, seed="now"), "seed: expected a whole number"),
            (lambda: revisit.analyze(some, rate=0.5), "rate: .* method sample or shards; exact does not use it"),
            (lambda: revisit.analyze(some, target_error=0.5), "target_error: .* method sample; exact"),
            (lambda: revisit.analyze(some, time_model="shen"), "time_model: .* method time; exact"),
            (lambda: revisit.analyze(some, method="sample", target_error=float("nan")), "target_error: expected a share"),
            (lambda: revisit.analyze(some, method="sample", rate="much"), "rate: expected a number, found 'much'"),
            (lambda: revisit.analyze(some).reuse.percentile("half"), "percentile: .* found 'half'"),
            (lambda: revisit.analyze(some).cache(32768), "cache: expected a Cache .* found 32768"),
            (lambda: revisit.analyze(some).hit_rates(["32K"], ways=-1), "ways: .* found -1"),
            (lambda: revisit.load(None), "path: expected"),
            (lambda: revisit.generate(None, length=10, distinct=2), "expected a Profile"),
            (lambda: revisit.generate("uniform", length=10.5, distinct=2), "count: .* found 10.5"),
            (lambda: revisit.analyze(some, model="private"), "private stacks need threads"),
            (lambda: revisit.Analysis(pairs=True), "pairs: needs sites"),
            (lambda: revisit.Analysis(method="guess"), "expected a method out of"),
            (lambda: revisit.Analysis(sites=True).add(some), "sites: expected an array"),
            (lambda: revisit.Analysis().add(some, sites=some), "sites: not counted"),
            (lambda: revisit.Analysis(model="private").add(some), "private stacks need threads"),
            (lambda: revisit.analyze(some, sites=some + 2**32), "sites: expected values from 0 to 4294967295"),
            (lambda: revisit.analyze(some, threads=-np.arange(10)), "threads: .* found -9"),
            (lambda: revisit.analyze(some).reuse.percentile(float("nan")), "share from 0 to 1"),
        ):
            with self.assertRaisesRegex(revisit.Error, words):
                wrong()
        with self.assertRaises(TypeError):
            revisit.analyze(np.array([1.5, 2.5]))
        with self.assertRaises(TypeError):
            revisit.analyze(some.reshape(2, 5))
        self.assertRegex(revisit.__version__, r"^\d+\.\d+\.\d+")


    def test_writes_are_truths_or_zeros_and_ones(self):
        columns = revisit.read_trace(DATA / "threads.csv")
        expected = revisit.analyze(**columns, model="private").reuse
        for kind in (np.uint8, np.int64, bool):
            again = dict(columns, writes=columns["writes"].astype(kind))
            self.assertEqual(revisit.analyze(**again, model="private").reuse, expected)

    def test_paths_are_texts_or_paths(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "p.json"
            profile = revisit.analyze([0, 64, 0])
            profile.save(path)
            self.assertEqual(revisit.load(path), profile)
            self.assertEqual(revisit.load(str(path)), profile)

    def test_blocks_that_are_not_the_caches_lines_are_warned_about(self):
        profile = revisit.analyze(np.arange(1000, dtype=np.uint64) * 64, granularity=4096)
        with self.assertWarnsRegex(UserWarning, "blocks of 4096 B"):
            profile.cache("32K:8:64")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            profile.cache("1M:8:4096")
            profile.hit_rates(["1M"], line=4096)


class Arrays(unittest.TestCase):
    def test_bins_are_views_that_outlive_the_profile(self):
        profile = revisit.analyze(np.arange(100000, dtype=np.uint64) % 5000 * 64)
        once, again = profile.reuse.bins, profile.reuse.bins
        self.assertEqual(once.__array_interface__["data"], again.__array_interface__["data"])
        self.assertFalse(once.flags.writeable)
        expected = once.copy()
        del profile, again
        gc.collect()
        np.testing.assert_array_equal(once, expected)

    def test_analyze_takes_no_copy(self):
        # A file of 256 MiB that is all holes: one block, read through the mapping.
        with tempfile.NamedTemporaryFile() as file:
            os.truncate(file.name, 256 << 20)
            mapped = np.memmap(file.name, dtype=np.uint64, mode="r")
            before = memory_used()
            profile = revisit.analyze(mapped, granularity=1)
            self.assertEqual((profile.accesses, profile.distinct), (32 << 20, 1))
            self.assertLess(memory_used() - before, 64 << 20)


def memory_used():
    """Bytes of this process that no file stands behind."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) << 10


class Profiles(unittest.TestCase):
    def test_save_load_merge(self):
        profile = revisit.load(str(DATA / "base.json"))
        with tempfile.TemporaryDirectory() as folder:
            profile.save(folder + "/again.json")
            again = revisit.load(folder + "/again.json")
        self.assertEqual(again.reuse, profile.reuse)
        self.assertEqual(json.loads(again.to_json()), json.loads(profile.to_json()))
        self.assertEqual((profile + again).accesses, 2 * profile.accesses)
        self.assertIn("accesses", str(profile))
        self.assertEqual(profile.sites[0].frame.function, json.loads(profile.to_json())["sites"][0]["function"])

    def test_caches(self):
        profile = revisit.analyze(np.arange(1000000, dtype=np.uint64) % 5000 * 64)
        self.assertAlmostEqual(profile.cache("32K:8:64").hit_rate, 0.0, 3)
        self.assertAlmostEqual(profile.cache(revisit.Cache("L2=1M:16:64")).hit_rate, 0.99496, 5)
        np.testing.assert_allclose(profile.hit_rates(["32K", 1 << 20]), [0, 0.995])
        self.assertEqual(profile.hit_rates(["1M"], ways=16)[0], profile.cache("1M:16:64").hit_rate)
        curve = profile.miss_ratio_curve()
        self.assertTrue((np.diff(curve["miss_rate"]) <= 0).all())
        self.assertAlmostEqual(curve["miss_rate"][-1], 0.005)

    def test_estimates_come_with_errors(self):
        addresses = revisit.generate("zipf:0.8", length="300K", distinct=20000)
        exact, sampled = revisit.analyze(addresses), revisit.analyze(addresses, method="sample", rate=0.05)
        self.assertGreater(sampled.reuse.bins["error"].max(), 0)
        self.assertGreater(revisit.accuracy(exact.reuse.rebin("log2"), sampled.reuse.rebin("log2")), 0.95)


class Convenience(unittest.TestCase):
    def profile(self):
        return revisit.analyze([0, 64, 0, 64, 128] * 100, sites=[1, 2, 1, 2, 3] * 100, pairs=True, time=True)

    def test_pickle_and_equality(self):
        profile = self.profile()
        again = pickle.loads(pickle.dumps(profile))
        self.assertEqual(again, profile)
        self.assertEqual(copy.deepcopy(profile), profile)
        self.assertEqual(pickle.loads(pickle.dumps(profile.reuse)), profile.reuse)
        cache = revisit.Cache("L2=1M:16:64")
        self.assertEqual(pickle.loads(pickle.dumps(cache)), cache)
        self.assertNotEqual(profile, revisit.analyze([0, 64]))
        self.assertNotEqual(profile, "a text")
        self.assertNotEqual(profile.reuse, None)
        sampled = revisit.analyze(revisit.generate("zipf:0.8", length="30K", distinct=2000), method="sample", rate=0.1)
        self.assertEqual(pickle.loads(pickle.dumps(sampled.reuse)), sampled.reuse)

    def test_everything_has_a_short_form(self):
        profile = self.profile()
        things = [profile, profile.reuse, profile.sites[0], profile.pairs[0], profile.sites[0].frame, revisit.Cache("32K:8:64"),
                  profile.cache("32K:8:64")]
        for thing in things:
            self.assertNotIn(" object at 0x", repr(thing))

    def test_notebooks_show_the_curve(self):
        shown = self.profile()._repr_html_()
        self.assertIn("<td>500</td>", shown)
        picture = xml.etree.ElementTree.fromstring(self.profile().curve_svg())
        line = next(picture.iter("{http://www.w3.org/2000/svg}polyline"))
        points = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
        self.assertEqual(len(points), len(self.profile().miss_ratio_curve()))
        self.assertEqual([x for x, _ in points], sorted(x for x, _ in points))
        self.assertEqual([y for _, y in points], sorted(y for _, y in points))  # down the page is fewer misses
        self.assertIn("<table>", revisit.analyze(np.array([], dtype=np.uint64))._repr_html_())

    def test_frames_of_sites_and_pairs(self):
        class Library(types.ModuleType):
            class DataFrame:
                def __init__(self, columns):
                    self.columns = columns

        profile = self.profile()
        for name in ("pandas", "polars"):
            with unittest.mock.patch.dict(sys.modules, {"pandas": None, "polars": None, name: Library(name)}):
                sites = profile.sites_frame().columns
                self.assertEqual(sites["site"], [site.id for site in profile.sites])
                self.assertEqual(sites["accesses"], [200, 200, 100])
                self.assertEqual({len(column) for column in sites.values()}, {3})
                pairs = profile.pairs_frame(name).columns
                self.assertEqual(pairs["count"], [pair.count for pair in profile.pairs])
                self.assertEqual({len(column) for column in pairs.values()}, {len(profile.pairs)})
        with unittest.mock.patch.dict(sys.modules, {"pandas": None, "polars": None}):
            with self.assertRaisesRegex(revisit.Error, "needs pandas or polars, which is not installed"):
                profile.sites_frame()
        with self.assertRaisesRegex(revisit.Error, "expected pandas or polars"):
            profile.sites_frame("arrow")

    def frames_of(self, name):
        if not importlib.util.find_spec(name):
            self.skipTest(f"{name} is not installed")
        profile = self.profile()
        sites, pairs = profile.sites_frame(name), profile.pairs_frame(name)
        self.assertEqual(type(sites).__module__.split(".")[0], name)
        self.assertEqual(list(sites["site"]), [site.id for site in profile.sites])
        self.assertEqual(list(sites["accesses"]), [200, 200, 100])
        self.assertEqual(list(pairs["count"]), [pair.count for pair in profile.pairs])
        self.assertEqual(list(pairs["median_distance"]), [pair.distances.percentile(0.5) for pair in profile.pairs])
        # A profile that has none, and sites without a reuse, whose median is missing.
        self.assertEqual(len(revisit.analyze([0, 64]).sites_frame(name)), 0)
        return revisit.analyze([0, 64, 128], sites=[1, 2, 3]).sites_frame(name)["median_distance"]

    def test_frames_of_pandas(self):
        self.assertEqual(list(self.frames_of("pandas").isna()), [True] * 3)

    def test_frames_of_polars(self):
        self.assertEqual(list(self.frames_of("polars").is_null()), [True] * 3)

    def test_stubs_tell_of_everything(self):
        """The .pyi has a docstring for each class, function and property of the module, and names nothing else."""
        tree = ast.parse((pathlib.Path(__file__).parent.parent / "python/revisit.pyi").read_text())

        def documented(body):
            told = {}
            for node in body:
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                    told[node.name] = node
                    if not node.name.startswith("__"):
                        self.assertTrue(ast.get_docstring(node), f"{node.name} has no docstring")
            return told

        stubs = documented(tree.body)
        self.assertEqual(set(stubs), {name for name in dir(revisit) if not name.startswith("_")})
        for name, node in stubs.items():
            if isinstance(node, ast.ClassDef) and not issubclass(getattr(revisit, name), Exception):
                public = {attribute for attribute in vars(getattr(revisit, name)) if not attribute.startswith("_")}
                told = {attribute for attribute in documented(node.body) if not attribute.startswith("_")}
                self.assertEqual(told, public, name)


    def test_stubs_have_the_parameters_of_the_module(self):
        """Names, order and kind of every function's parameters; pybind11 writes them in the first line of the docstring."""
        tree = ast.parse((pathlib.Path(__file__).parent.parent / "python/revisit.pyi").read_text())
        functions = [(revisit, node) for node in tree.body if isinstance(node, ast.FunctionDef)]
        for parent in (node for node in tree.body if isinstance(node, ast.ClassDef)):
            functions += [(getattr(revisit, parent.name), node) for node in parent.body
                          if isinstance(node, ast.FunctionDef) and not node.decorator_list and not node.name.startswith("__")]
        self.assertGreater(len(functions), 15)
        for owner, node in functions:
            signature = re.match(rf"{node.name}\((.*)\) -> ", getattr(owner, node.name).__doc__)[1]
            real = re.findall(r"(?:^|, )(\*|\w+)(?=:|,|$)", signature)
            told = [a.arg for a in node.args.args] + (["*"] + [a.arg for a in node.args.kwonlyargs] if node.args.kwonlyargs else [])
            self.assertEqual(told, real, node.name)


class Generate(unittest.TestCase):
    def test_has_the_distances_asked_for(self):
        addresses = revisit.generate("normal:1000,50", length=200000, distinct=4000, seed=3)
        self.assertEqual((addresses.dtype, len(addresses)), (np.uint64, 200000))
        profile = revisit.analyze(addresses)
        self.assertEqual(profile.distinct, 4000)
        self.assertAlmostEqual(profile.reuse.percentile(0.5), 1000, delta=20)
        twin = revisit.analyze(revisit.generate(profile))
        self.assertGreater(revisit.accuracy(profile.reuse, twin.reuse), 0.98)

    def test_columns_go_back_in(self):
        columns = revisit.generate("uniform", length=20000, distinct=500, threads=4, sharing=0.5, writes=0.3, columns=True)
        self.assertEqual(columns["writes"].dtype, bool)
        self.assertAlmostEqual(columns["writes"].mean(), 0.3, delta=0.02)
        self.assertGreater(revisit.analyze(**columns, model="private").reuse.invalidated, 0)


unittest.main()
