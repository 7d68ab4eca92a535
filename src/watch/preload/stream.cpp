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

// "low-high rwxp offset device inode   path"
void write_modules(Thread& t) {
    Maps maps;
    while (char* line = maps.line()) {
        const char* at = line;
        std::uint64_t low = hexadecimal(at);
        at++;
        std::uint64_t high = hexadecimal(at);
        at += 6;
        std::uint64_t offset = hexadecimal(at);
        const char* path = strchr(at, '/');
        if (path == nullptr) continue;
        auto bytes = static_cast<unsigned>(strlen(path));
        if (bytes > REVISIT_TEXT_MAX || !t.writer.room(5 + bytes / 8)) continue;
        t.writer.put(REVISIT_RECORD(REVISIT_MODULE, bytes));
        t.writer.put(low);
        t.writer.put(high);
        t.writer.put(offset);
        t.writer.put_text(path, bytes);
    }
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
