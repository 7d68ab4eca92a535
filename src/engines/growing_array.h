// An array that grows in place.
//
// Problem. A table that doubles by copying needs three times its old size for a moment, and touches
// every byte again. Engines promise a bound on bytes a block that holds during growth as well.
//
// Idea. Reserve address space for as much as the machine could ever hold, make a prefix of it usable,
// and lengthen the prefix. Nothing moves, pointers stay good, and only what is written to becomes
// memory. Large arrays ask for huge pages: at millions of blocks every lookup is a TLB miss without
// them.
//
// Small arrays that come and go, those of windows that several threads count, are kept for the next
// ones: unmapping stops all threads of a process, and took a quarter of a live profile's counting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace revisit {

// The untyped part. Bytes not yet written read as zero. Growth throws std::bad_alloc when the system
// refuses; engines turn that into an Error at their edge.
class GrowingBytes {
 public:
    static constexpr std::size_t kHugePage = std::size_t{2} << 20;

    // From `huge_from` bytes on the array grows by huge pages, even if it needs part of one only.
    explicit GrowingBytes(std::size_t huge_from) : huge_from_(huge_from) {}
    GrowingBytes(GrowingBytes&& other) noexcept : huge_from_(other.huge_from_) { swap(other); }
    GrowingBytes& operator=(GrowingBytes&& other) noexcept {
        swap(other);
        return *this;
    }
    ~GrowingBytes();

    void require(std::size_t bytes) {
        if (bytes > usable_) [[unlikely]]
            grow(bytes);
    }
    // Returns the pages that lie wholly inside [from, to) to the system; they read as zero afterwards.
    void release(std::size_t from, std::size_t to);
    // Gives the address space back that was reserved for growth. There are only so many terabytes of
    // it, and each array reserves as much as the machine has memory.
    void stop_growing();
    std::byte* data() const { return data_; }
    // Unmaps what is kept for arrays to come.
    static void drop_spares();

 private:
    struct Spares;
    static Spares& spares();
    void reserve(std::size_t bytes);
    void grow(std::size_t bytes);
    void swap(GrowingBytes& other) noexcept {
        std::swap(huge_from_, other.huge_from_);
        std::swap(data_, other.data_);
        std::swap(mapping_, other.mapping_);
        std::swap(mapped_, other.mapped_);
        std::swap(reserved_, other.reserved_);
        std::swap(usable_, other.usable_);
        std::swap(written_, other.written_);
    }

    std::size_t huge_from_;
    std::byte* data_ = nullptr;
    void* mapping_ = nullptr;
    std::size_t mapped_ = 0;
    std::size_t reserved_ = 0;
    std::size_t usable_ = 0;
    std::size_t written_ = 0;  // that an array before this one may have written to
};

template <class T>
class GrowingArray {
 public:
    explicit GrowingArray(std::size_t huge_from = 8 * GrowingBytes::kHugePage) : bytes_(huge_from) {}

    // Makes elements [0, count) usable; new ones are zero.
    void require(std::size_t count) { bytes_.require(count * sizeof(T)); }
    void release(std::size_t from, std::size_t to) { bytes_.release(from * sizeof(T), to * sizeof(T)); }
    void stop_growing() { bytes_.stop_growing(); }
    T* data() const { return reinterpret_cast<T*>(bytes_.data()); }
    T& operator[](std::size_t i) const { return data()[i]; }

 private:
    GrowingBytes bytes_;
};

}  // namespace revisit
