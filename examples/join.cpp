// A hash join: plain, and partitioned first.
//
// Orders are matched with customers. The plain join puts all customers into one hash table and looks
// every order up in it: the orders stream by, used once, while each lookup lands anywhere in the table,
// so its reuse distance is about the number of lines of the whole table. The partitioned join first
// deals customers and orders into 64 heaps by the key's top bits; then each heap is joined with a table
// a 64th as large, whose distances fit a cache. It pays for that with two more passes, but those are
// sequential.
//
// usage: join [plain|partitioned] [customers] [orders]       default: plain 20000 200000
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace {

struct Row {
    std::uint32_t key;
    std::uint32_t payload;
};

std::uint32_t hash(std::uint32_t key) {
    return key * 2654435769u;
}

// Open addressing, at most half full; a row with payload 0 is empty.
class Table {
 public:
    explicit Table(std::size_t rows) {
        while ((std::size_t{1} << bits_) < 2 * rows) ++bits_;
        slots_.resize(std::size_t{1} << bits_);
    }
    void insert(Row row) {
        std::size_t i = place(row.key);
        while (slots_[i].payload != 0) i = (i + 1) & (slots_.size() - 1);
        slots_[i] = row;
    }
    std::uint32_t find(std::uint32_t key) const {
        for (std::size_t i = place(key); slots_[i].payload != 0; i = (i + 1) & (slots_.size() - 1))
            if (slots_[i].key == key) return slots_[i].payload;
        return 0;
    }

 private:
    // Middle bits: the top ones say which heap.
    std::size_t place(std::uint32_t key) const {
        return (hash(key) >> (26 - bits_)) & (slots_.size() - 1);
    }
    unsigned bits_ = 1;
    std::vector<Row> slots_;
};

std::uint64_t join(const std::vector<Row>& customers, const std::vector<Row>& orders) {
    Table table(customers.size() + 1);
    for (Row row : customers) table.insert(row);
    std::uint64_t matched = 0;
    for (Row order : orders) matched += table.find(order.key) * std::uint64_t{order.payload & 15};
    return matched;
}

constexpr unsigned kHeapBits = 6;

std::vector<std::vector<Row>> deal(const std::vector<Row>& rows) {
    std::vector<std::vector<Row>> heaps(1u << kHeapBits);
    for (Row row : rows) heaps[hash(row.key) >> (32 - kHeapBits)].push_back(row);
    return heaps;
}

}  // namespace

int main(int argc, char** argv) {
    const char* kind = argc > 1 ? argv[1] : "plain";
    std::uint32_t customer_count = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 20000;
    std::uint32_t order_count = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 200000;
    bool partitioned = std::strcmp(kind, "partitioned") == 0;
    if ((!partitioned && std::strcmp(kind, "plain") != 0) || customer_count == 0 ||
        customer_count > 1u << 24) {
        std::fprintf(stderr, "usage: join [plain|partitioned] [customers] [orders]\n");
        return 2;
    }
    std::vector<Row> customers, orders;
    for (std::uint32_t i = 0; i < customer_count; ++i) customers.push_back({i, i + 1});
    std::uint32_t state = 1;
    for (std::uint32_t i = 0; i < order_count; ++i) {
        state = state * 1664525u + 1013904223u;
        orders.push_back({(state >> 7) % customer_count, i});
    }
    std::uint64_t matched = 0;
    if (partitioned) {
        auto customer_heaps = deal(customers), order_heaps = deal(orders);
        for (std::size_t i = 0; i < customer_heaps.size(); ++i)
            matched += join(customer_heaps[i], order_heaps[i]);
    } else {
        matched = join(customers, orders);
    }
    std::printf("%s join, %u customers, %u orders: %llu\n", kind, customer_count, order_count,
                static_cast<unsigned long long>(matched));
}
