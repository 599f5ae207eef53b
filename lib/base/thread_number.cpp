// A table has one bit for each number that is in use. A thread takes the lowest free number of the table, and frees it when it ends. When the
// table is full, threads get ascending numbers beyond it, which are not used again.
#include <base/thread_number.h>

#include <array>
#include <atomic>
#include <bit>

namespace polder {
namespace {

constinit std::array<std::atomic<uint64_t>, 16> in_use{};
constexpr uint32_t table_size = 64 * in_use.size();

// Frees the number when the thread ends. The application's thread-local objects may call OpenCL in destructors that run after this one.
// They get a number beyond the table, because another thread may have this number by then and take it for its own alone.
struct GiveBack {
    uint32_t number = table_size;
    ~GiveBack() {
        if (number == table_size)
            return;
        thread_number_state::number_plus_1 = table_size + number + 1;
        // The next thread with this number sees all that this thread has written.
        in_use[number / 64].fetch_and(~(uint64_t{1} << number % 64), std::memory_order_release);
    }
};
thread_local GiveBack give_back;

// Takes the lowest free number of the table. Returns table_size when none is free.
uint32_t take_lowest() {
    for (uint32_t word = 0; word < in_use.size(); ++word) {
        uint64_t known = in_use[word].load(std::memory_order_relaxed);
        while (known != ~uint64_t{0}) {
            const auto bit = static_cast<uint32_t>(std::countr_one(known));
            if (in_use[word].compare_exchange_weak(known, known | uint64_t{1} << bit, std::memory_order_acquire,
                                                   std::memory_order_relaxed))
                return 64 * word + bit;
        }
    }
    return table_size;
}

}  // namespace

uint32_t thread_number_state::assign() {
    static constinit std::atomic<uint32_t> beyond_table{0};
    uint32_t number = take_lowest();
    if (number < table_size)
        give_back.number = number;
    else  // after 2^32 such threads, the numbers beyond the table begin again
        number = table_size + beyond_table.fetch_add(1, std::memory_order_relaxed) % (~uint32_t{0} - table_size);
    number_plus_1 = number + 1;
    return number_plus_1;
}

}  // namespace polder
