// What the stream must know beside samples: which files are mapped where, and where stacks lie.
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>

#include "watch/preload/thread.h"

namespace revisit::watch {
namespace {

// Lines of /proc/self/maps, one at a time, in a buffer of our own.
class Maps {
 public:
    Maps() {
        file_ = system_call(SYS_openat, -100, reinterpret_cast<long>("/proc/self/maps"), 02000000);
    }
    ~Maps() {
        if (file_ >= 0) system_call(SYS_close, file_);
    }
    char* line() {
        for (;;) {
            if (char* end = static_cast<char*>(memchr(buffer_ + begin_, '\n', size_ - begin_))) {
                *end = 0;
                char* result = buffer_ + begin_;
                begin_ = static_cast<std::size_t>(end + 1 - buffer_);
                return result;
            }
            memmove(buffer_, buffer_ + begin_, size_ - begin_);
            size_ -= begin_;
            begin_ = 0;
            if (file_ < 0 || size_ == sizeof buffer_) return nullptr;
            long got = system_call(SYS_read, file_, reinterpret_cast<long>(buffer_ + size_),
                                   static_cast<long>(sizeof buffer_ - size_));
            if (got <= 0) return nullptr;
            size_ += static_cast<std::size_t>(got);
        }
    }

 private:
    long file_;
    std::size_t begin_ = 0, size_ = 0;
    char buffer_[8192];
};

std::uint64_t hexadecimal(const char*& text) {
    std::uint64_t value = 0;
    for (;; text++) {
        char c = *text;
        unsigned digit = c >= '0' && c <= '9'   ? static_cast<unsigned>(c - '0')
                         : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a') + 10
                                                : 16;
        if (digit == 16) return value;
        value = value * 16 + digit;
    }
}

}  // namespace

// "low-high rwxp offset device inode   path". What was told before is not told again.
void write_modules(Thread& t) {
    Code& code = process.code;
    code.unloads = __atomic_load_n(&process.unloads, __ATOMIC_ACQUIRE);
    std::uint32_t count = 0;
    Maps maps;
    while (char* line = maps.line()) {
        const char* at = line;
        std::uint64_t low = hexadecimal(at);
        at++;
        std::uint64_t high = hexadecimal(at);
        bool is_code = at[3] == 'x';
        at += 6;
        std::uint64_t offset = hexadecimal(at);
        const char* path = strchr(at, '/');
        if (path == nullptr) continue;
        if (is_code && count < Code::kMost) code.range[count++] = {low, high};
        auto bytes = static_cast<unsigned>(strlen(path));
        std::uint64_t hash = low * 0x9e3779b97f4a7c15 ^ high;
        for (unsigned i = 0; i < bytes; i++)
            hash = (hash ^ static_cast<unsigned char>(path[i])) * 0x100000001b3;
        std::uint64_t& told = code.told[hash >> 52];
        if (told == hash || bytes > REVISIT_TEXT_MAX || !t.writer.room(5 + bytes / 8)) continue;
        told = hash;
        t.writer.put(REVISIT_RECORD(REVISIT_MODULE, bytes));
        t.writer.put(low);
        t.writer.put(high);
        t.writer.put(offset);
        t.writer.put_text(path, bytes);
    }
    __atomic_store_n(&code.count, count, __ATOMIC_RELEASE);
}

namespace {

bool is_known(std::uint64_t pc) {
    const Code& code = process.code;
    std::uint32_t count = __atomic_load_n(&code.count, __ATOMIC_ACQUIRE);
    for (std::uint32_t i = 0; i < count; i++)
        if (pc - code.range[i].low < code.range[i].high - code.range[i].low) return true;
    return false;
}

}  // namespace

// Code that was loaded since modules were last read is told now. Code that is in no file would have
// them read at every sample: the waits get longer.
void know_code(Thread& t, std::uint64_t pc) {
    Code& code = process.code;
    if (code.unloads == __atomic_load_n(&process.unloads, __ATOMIC_ACQUIRE)) {
        if (is_known(pc)) return;
        if (t.code_wait > 0) {
            t.code_wait--;
            return;
        }
    }
    if (__atomic_exchange_n(&code.is_being_read, true, __ATOMIC_ACQUIRE)) return;
    write_modules(t);
    t.writer.hand_over();  // another thread may tell of it at once
    __atomic_store_n(&code.is_being_read, false, __ATOMIC_RELEASE);
    if (is_known(pc)) return;
    t.code_patience = t.code_patience < 4096 ? 2 * t.code_patience + 1 : t.code_patience;
    t.code_wait = t.code_patience;
}

void write_note(Thread& t, unsigned what, int error) {
    if (t.noted >> what & 1 || !t.writer.room(2)) return;
    t.noted = static_cast<std::uint8_t>(t.noted | 1u << what);
    t.writer.put(REVISIT_RECORD(REVISIT_WATCH_NOTE, what));
    t.writer.put(static_cast<std::uint64_t>(error));
}

void write_stack(Thread& t) {
    void* low = nullptr;
    std::size_t bytes = 0;
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    pthread_attr_getstack(&attributes, &low, &bytes);
    pthread_attr_destroy(&attributes);
    if (!t.writer.room(3)) return;
    t.writer.put(REVISIT_RECORD(REVISIT_STACK, t.number));
    t.writer.put(reinterpret_cast<std::uint64_t>(low));
    t.writer.put(reinterpret_cast<std::uint64_t>(low) + bytes);
}

}  // namespace revisit::watch
