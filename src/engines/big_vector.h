// A vector for millions of elements that are written once and read soon.
//
// Problem. Fresh memory comes in pages of 4 KiB, each zeroed by the system when first touched: sixteen
// threads that filled gigabytes spent four fifths of their time there, and a vector zeroes it all
// again. Idea. Large arrays are mapped on their own, with huge pages asked for, and elements are left
// as they come. Small ones are like any other.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace revisit {

template <class T>
class HugePageAllocator {
 public:
    using value_type = T;
    HugePageAllocator() = default;
    template <class U>
    HugePageAllocator(const HugePageAllocator<U>&) {}

    T* allocate(std::size_t count) {
        const std::size_t bytes = count * sizeof(T);
        if (bytes < kLarge) return static_cast<T*>(::operator new(bytes));
        void* const got = mmap(nullptr, mapped(bytes), PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (got == MAP_FAILED) throw std::bad_alloc();
        madvise(got, mapped(bytes), MADV_HUGEPAGE);  // a wish; small pages do as well
        return static_cast<T*>(got);
    }
    void deallocate(T* data, std::size_t count) noexcept {
        const std::size_t bytes = count * sizeof(T);
        if (bytes < kLarge)
            ::operator delete(data);
        else
            munmap(data, mapped(bytes));
    }

    // Whether so many elements come as zeros, when they are first allocated.
    static bool clears(std::size_t count) { return count * sizeof(T) >= kLarge; }

    template <class U>
    void construct(U* at) noexcept {
        ::new (static_cast<void*>(at)) U;  // whatever lies there
    }
    template <class U, class... Args>
    void construct(U* at, Args&&... args) {
        ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
    }
    bool operator==(const HugePageAllocator&) const { return true; }

 private:
    static constexpr std::size_t kLarge = std::size_t{4} << 20, kHugePage = std::size_t{2} << 20;
    static std::size_t mapped(std::size_t bytes) {
        return (bytes + kHugePage - 1) / kHugePage * kHugePage;
    }
};

template <class T>
using BigVector = std::vector<T, HugePageAllocator<T>>;

}  // namespace revisit
