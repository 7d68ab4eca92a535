// Precise events without the processors that have them: records as the kernel would write them, byte by
// byte, and systems that answer as such machines would.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <set>

#include "watch/pmu.h"

namespace revisit::watch {
namespace {

class FakeRing {
 public:
    explicit FakeRing(std::uint64_t bytes = 4096, std::uint64_t start = 0) : data_(bytes) {
        page_.data_head = page_.data_tail = start;
    }
    void put(std::uint32_t type, const std::vector<std::uint64_t>& words) {
        perf_event_header header{type, PERF_RECORD_MISC_USER,
                                 static_cast<std::uint16_t>(sizeof header + 8 * words.size())};
        bytes(&header, sizeof header);
        bytes(words.data(), 8 * words.size());
    }
    void bytes(const void* from, std::size_t count) {
        for (std::size_t i = 0; i < count; i++)
            data_[page_.data_head++ % data_.size()] = static_cast<const std::byte*>(from)[i];
    }
    PerfRing ring(bool has_raw = false) { return {&page_, data_.data(), data_.size(), has_raw}; }
    perf_event_mmap_page& page() { return page_; }

 private:
    perf_event_mmap_page page_{};
    std::vector<std::byte> data_;
};

constexpr std::uint64_t kLoad = PERF_MEM_OP_LOAD, kStore = PERF_MEM_OP_STORE;
constexpr std::uint64_t kCode = 0x401000, kWord = 0x7f0000001238, kKernel = 0xffff888000001000;

TEST(PerfRing, reads_place_address_and_kind) {
    FakeRing fake;
    fake.put(PERF_RECORD_SAMPLE, {kCode, kWord, kStore | std::uint64_t{PERF_MEM_LVL_HIT} << 5});
    PerfRing ring = fake.ring();
    PmuSample sample;
    ASSERT_TRUE(ring.newest(sample));
    EXPECT_EQ(sample.pc, kCode);
    EXPECT_EQ(sample.address, kWord);
    EXPECT_TRUE(sample.writes);
    EXPECT_EQ(fake.page().data_tail, fake.page().data_head);
    EXPECT_FALSE(ring.newest(sample));
}

TEST(PerfRing, records_wrap_around_at_every_place) {
    for (std::uint64_t start = 0; start < 512; start += 8) {
        FakeRing fake(256, start);
        PerfRing ring = fake.ring();
        for (unsigned i = 1; i <= 40; i++) {
            fake.put(PERF_RECORD_SAMPLE, {kCode + i, kWord + i, kLoad});
            PmuSample sample;
            ASSERT_TRUE(ring.newest(sample)) << start << " " << i;
            EXPECT_EQ(sample.pc, kCode + i);
            EXPECT_EQ(sample.address, kWord + i);
            EXPECT_FALSE(sample.writes);
        }
        EXPECT_EQ(ring.counts().broken, 0u);
    }
}

TEST(PerfRing, newest_of_many_and_others_counted) {
    FakeRing fake;
    fake.put(PERF_RECORD_SAMPLE, {kCode, kWord, kLoad});
    fake.put(PERF_RECORD_THROTTLE, {1, 2, 3});
    fake.put(PERF_RECORD_LOST, {7, 12});
    fake.put(PERF_RECORD_UNTHROTTLE, {1, 2, 3});
    fake.put(PERF_RECORD_SAMPLE, {kCode + 4, kWord + 8, kLoad});
    fake.put(PERF_RECORD_SAMPLE, {kCode + 8, 0, kLoad});
    fake.put(PERF_RECORD_SAMPLE, {kCode + 8, kKernel, kLoad});
    fake.put(PERF_RECORD_SAMPLE, {kKernel, kWord, kLoad});
    PerfRing ring = fake.ring();
    PmuSample sample;
    ASSERT_TRUE(ring.newest(sample));
    EXPECT_EQ(sample.pc, kCode + 4);
    EXPECT_EQ(sample.address, kWord + 8);
    EXPECT_EQ(ring.counts().samples, 5u);
    EXPECT_EQ(ring.counts().without_address, 3u);
    EXPECT_EQ(ring.counts().lost, 12u);
    EXPECT_EQ(ring.counts().throttled, 1u);
    EXPECT_EQ(ring.counts().broken, 0u);
}

TEST(PerfRing, broken_records_tell_nothing) {
    PmuSample sample;
    for (std::size_t words = 0; words < 3; words++) {  // too short for what was asked
        FakeRing fake;
        fake.put(PERF_RECORD_SAMPLE, std::vector<std::uint64_t>(words, kWord));
        PerfRing ring = fake.ring();
        EXPECT_FALSE(ring.newest(sample));
        EXPECT_EQ(ring.counts().broken, 1u);
    }
    for (std::uint16_t size : {0, 4, 12, 4000}) {  // sizes that cannot be
        FakeRing fake;
        perf_event_header header{PERF_RECORD_SAMPLE, 0, size};
        fake.bytes(&header, sizeof header);
        fake.put(PERF_RECORD_SAMPLE, {kCode, kWord, kLoad});
        PerfRing ring = fake.ring();
        EXPECT_FALSE(ring.newest(sample));
        EXPECT_EQ(ring.counts().broken, 1u);
        EXPECT_EQ(fake.page().data_tail, fake.page().data_head);
    }
    FakeRing overrun(256);
    overrun.page().data_head = 10000;
    PerfRing ring = overrun.ring();
    EXPECT_FALSE(ring.newest(sample));
    EXPECT_EQ(overrun.page().data_tail, 10000u);
    EXPECT_FALSE(PerfRing().newest(sample));
}

// size and capabilities, then control, rip, data, data 2, data 3, linear address, physical address
std::vector<std::uint64_t> ibs(std::uint64_t address, std::uint64_t data3, std::uint64_t linear) {
    std::uint64_t size = 4 + 7 * 8;
    return {kCode, address, size | std::uint64_t{0x3ff} << 32, 1, kCode, 2, 3, data3, linear, 99, 0};
}

TEST(PerfRing, ibs_registers_give_the_address_where_it_is_valid) {
    constexpr std::uint64_t kIsLoad = 1, kIsStore = 2, kValid = 1u << 17;
    struct Case {
        std::uint64_t told, data3, linear, expected;
        bool writes;
    } cases[] = {
        {0, kIsLoad | kValid, kWord, kWord, false},
        {0, kIsStore | kValid, kWord, kWord, true},
        {kWord, kIsLoad | kValid, kWord, kWord, false},
        {kWord, kIsLoad, kWord, 0, false},
        {0, kValid, kWord, 0, false},
        {0, kIsLoad | kValid, kKernel, 0, false},
    };
    for (const Case& one : cases) {
        FakeRing fake(4096, 4096 - 48);  // wraps in the registers
        fake.put(PERF_RECORD_SAMPLE, ibs(one.told, one.data3, one.linear));
        PerfRing ring = fake.ring(true);
        PmuSample sample;
        EXPECT_EQ(ring.newest(sample), one.expected != 0);
        EXPECT_EQ(ring.counts().broken, 0u);
        if (one.expected == 0) continue;
        EXPECT_EQ(sample.address, one.expected);
        EXPECT_EQ(sample.writes, one.writes);
    }
    FakeRing fake;
    fake.put(PERF_RECORD_SAMPLE, {kCode, kWord, 4000, 0});  // more registers than there is record
    PerfRing ring = fake.ring(true);
    PmuSample sample;
    EXPECT_FALSE(ring.newest(sample));
    EXPECT_EQ(ring.counts().broken, 1u);
}

// A machine by its files and by the events that it takes.
class FakeSystem : public PerfSystem {
 public:
    std::map<std::string, std::string> files;
    std::set<std::pair<std::uint64_t, std::uint64_t>> accepts;  // type and config
    bool counts_for_real = true, tells_for_real = true;
    bool wants_leader = false;
    std::vector<perf_event_attr> opened;

    std::string read(const std::string& path) const override {
        auto found = files.find(path);
        return found == files.end() ? "" : found->second;
    }
    std::vector<std::string> list(const std::string& directory) const override {
        std::set<std::string> names;
        for (const auto& [path, text] : files)
            if (path.starts_with(directory))
                names.insert(
                    path.substr(directory.size(), path.find('/', directory.size()) - directory.size()));
        return {names.begin(), names.end()};
    }
    int open(const perf_event_attr& attributes, int group) override {
        if (!accepts.contains({attributes.type, attributes.config})) return -ENOENT;
        if (attributes.sigtrap && !attributes.remove_on_exec) return -EINVAL;  // as the kernel has it
        if (wants_leader && attributes.sample_period != 0 && group < 0) return -ENODATA;
        opened.push_back(attributes);
        balance++;
        return static_cast<int>(opened.size());
    }
    void close(int) override { balance--; }
    void touch(const std::vector<int>&) override {
        ring_.put(PERF_RECORD_SAMPLE, {kCode, tells_for_real ? kWord : 0, kLoad});
    }
    bool is_ours(std::uint64_t address) const override { return address == kWord; }
    std::uint64_t count(int) override { return counts_for_real ? kTouches : 0; }
    PerfRing ring(int, bool) override { return ring_.ring(); }

    int balance = 0;

 private:
    FakeRing ring_;
};

const std::string kAt = "/sys/bus/event_source/devices/";

SourceReport only(FakeSystem& system, const std::string& name) {
    for (const SourceReport& report : find_sources(system))
        if (report.name == name) {
            EXPECT_EQ(system.balance, 0) << "events left open";
            return report;
        }
    ADD_FAILURE() << name;
    return {};
}

FakeSystem intel_system() {
    FakeSystem system;
    system.files = {{"/proc/cpuinfo", "vendor_id\t: GenuineIntel"},
                    {kAt + "cpu/type", "4"},
                    {kAt + "cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3"},
                    {kAt + "cpu/events/mem-stores", "event=0xd0,umask=0x82"}};
    return system;
}

TEST(Sources, intel_loads_and_stores_are_precise_and_count) {
    FakeSystem system = intel_system();
    system.accepts = {{4, 0x81d0}, {4, 0x82d0}};
    SourceReport report = only(system, "Intel PEBS");
    ASSERT_TRUE(report.works) << report.detail;
    EXPECT_NE(report.detail.find("not verified on hardware"), std::string::npos);
    EXPECT_EQ(report.settings.events, 2u);
    EXPECT_TRUE(report.settings.clock());
    const perf_event_attr& asked = system.opened[0];
    EXPECT_EQ(asked.precise_ip, 2u);
    EXPECT_EQ(asked.sample_type, PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_SRC);
    EXPECT_TRUE(asked.sigtrap && asked.remove_on_exec && asked.exclude_kernel);
    EXPECT_FALSE(only(system, "AMD IBS").works);
}

TEST(Sources, intel_by_latency_with_its_leader_where_the_first_is_refused) {
    FakeSystem system = intel_system();
    system.files[kAt + "cpu/events/mem-loads-aux"] = "event=0x03,umask=0x82";
    system.accepts = {{4, 0x1cd}, {4, 0x82d0}, {4, 0x8203}};
    system.wants_leader = true;
    SourceReport report = only(system, "Intel PEBS");
    ASSERT_TRUE(report.works) << report.detail;
    EXPECT_EQ(report.settings.leader.config, 0x8203u);
    EXPECT_EQ(report.settings.event[0].config1, 3u);
    EXPECT_FALSE(report.settings.clock());
}

TEST(Sources, events_that_open_but_do_nothing_are_not_taken) {
    FakeSystem system = intel_system();
    system.accepts = {{4, 0x81d0}, {4, 0x82d0}};
    system.counts_for_real = false;
    EXPECT_FALSE(only(system, "Intel PEBS").works);
    FakeSystem silent = intel_system();
    silent.accepts = system.accepts;
    silent.tells_for_real = false;
    SourceReport report = only(silent, "Intel PEBS");
    EXPECT_FALSE(report.works);
    EXPECT_FALSE(report.detail.empty());
}

TEST(Sources, amd_has_its_own_unit_and_a_counter_beside_it) {
    FakeSystem system;
    system.files = {{kAt + "ibs_op/type", "11"}, {kAt + "ibs_op/format/swfilt", "config2:0"}};
    system.accepts = {{11, 1u << 19}};
    SourceReport report = only(system, "AMD IBS");
    ASSERT_TRUE(report.works) << report.detail;
    EXPECT_EQ(report.settings.event[0].type, 11u);
    EXPECT_TRUE(report.settings.raw);
    EXPECT_EQ(system.opened[0].sample_type & PERF_SAMPLE_RAW, PERF_SAMPLE_RAW);
    EXPECT_TRUE(report.settings.clock());
}

TEST(Sources, arm_counts_and_looks_ahead) {
    FakeSystem system;
    system.files = {{kAt + "armv8_pmuv3_0/type", "8"}, {kAt + "arm_spe_0/type", "9"}};
    system.accepts = {{8, 0x13}};
    SourceReport report = only(system, "Arm MEM_ACCESS");
    ASSERT_TRUE(report.works) << report.detail;
    EXPECT_FALSE(report.settings.tells_address);
    EXPECT_TRUE(report.settings.clock());
    EXPECT_EQ(system.opened[0].precise_ip, 0u);
    EXPECT_EQ(system.opened[0].sample_type, 0u);
}

TEST(Sources, this_machine_says_why_not_or_works) {
    auto system = this_system();
    for (const SourceReport& report : find_sources(*system)) EXPECT_FALSE(report.detail.empty());
}

}  // namespace
}  // namespace revisit::watch
