# Every target sets the machine up first (a second when it already is), so each works alone on a Debian or Ubuntu
# that has only git and make. SETUP=no installs nothing and builds with what is there.
# PRESET=debug|asan|coverage builds elsewhere; release is build/. CONFIGURE=-D… is passed to CMake.
PRESET ?= release
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)
SETUP  ?= yes
BUILD  := $(if $(filter release,$(PRESET)),build,build-$(PRESET))
export SETUP JOBS

.PHONY: build check demo docs bench bench-commands bench-guard bench-record eval-time eval-multicore eval-programs eval-sharing eval-watch eval-predict fuzz install package release-check format tidy clean setup
.DEFAULT_GOAL := build

setup:
	@scripts/install-dependencies

# Configured each time: what was installed since is found.
build: setup
	@cmake --preset $(PRESET) -Wno-dev $(CONFIGURE) >/dev/null || cmake --preset $(PRESET) -Wno-dev $(CONFIGURE)
	@cmake --build $(BUILD) -j $(JOBS)

# Packages, everything built, every test.
check:
	@scripts/check $(PRESET) $(BUILD) $(CONFIGURE)

demo:
	@scripts/demo $(PRESET) $(BUILD)

docs: build
	@scripts/build-docs $(BUILD)/revisit $(BUILD)/docs-site

eval-time: build
	@scripts/install-dependencies bzip2 perl sqlite3 xz-utils
	@scripts/eval-time $(BUILD)

eval-multicore: build
	@scripts/eval-multicore $(BUILD)

# Real programs, as they are and sampled: docs/programs.md.
eval-programs: build
	@scripts/install-dependencies xz-utils gzip zstd ffmpeg sqlite3 postgresql redis nginx apache2-utils memcached ruby lua5.4 luajit perl nodejs \
	    default-jdk-headless golang ripgrep fd-find git imagemagick gawk openssl musl-tools chromium
	@scripts/eval-programs $(BUILD) --write --time; status=$$?; scripts/figures --write; exit $$status

eval-sharing: build
	@scripts/eval-sharing --build $(BUILD)

eval-watch: build
	@scripts/install-dependencies perl sqlite3 xz-utils
	@scripts/eval-watch $(BUILD)

# All of them, also where one misses a target; the status tells.
bench: build
	@status=0; for bench in bench_engines bench_parallel "bench_parallel beside" "bench_parallel ranks" "bench_parallel volume" bench_multicore bench_library; do \
	    $(BUILD)/$$bench || status=1; done; exit $$status

# The program by the clock, files in the page cache.
bench-commands: build
	@$(BUILD)/bench_commands $(BUILD)/revisit

# Under three minutes: ratios and memory against the bounds in bench/bounds.txt.
bench-guard: build
	@$(BUILD)/bench_commands $(BUILD)/revisit guard bench/bounds.txt

bench-record: build
	@bench/record.py $(BUILD)

eval-predict: build
	@scripts/eval-predict $(BUILD)

fuzz:
	@scripts/install-dependencies
	@scripts/fuzz

install: build
	@cmake --install $(BUILD) --prefix $(PREFIX)

# .deb files, a .tar.gz that can be unpacked anywhere, and a Python wheel, in build/packages.
package:
	@scripts/install-dependencies --for build dpkg-dev file
	@cmake --preset $(PRESET) -Wno-dev $(CONFIGURE) >/dev/null || cmake --preset $(PRESET) -Wno-dev $(CONFIGURE)
	@cmake --build $(BUILD) -j $(JOBS)
	@cd $(BUILD) && cpack >packages.log || { cat packages.log; exit 1; }
	@if ninja -C $(BUILD) -t query wheel >/dev/null 2>&1; then ninja -C $(BUILD) wheel >/dev/null; else echo "package: the Python module is not built; no wheel" >&2; fi
	@rm -rf $(BUILD)/packages/_CPack_Packages; ls -sh $(BUILD)/packages

# Everything that must hold before a release (as root, with debootstrap).
release-check: build
	@scripts/release-check $(BUILD)

format:
	@git ls-files '*.h' '*.cpp' '*.cu' | xargs clang-format-19 -i

tidy: build
	@git ls-files 'src/*.cpp' | xargs clang-tidy-19 -p $(BUILD) --quiet

clean:
	@rm -rf build build-*
