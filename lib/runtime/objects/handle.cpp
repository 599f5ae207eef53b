// Free cells are in a list per thread (base/thread_free_list.h) and in a lock-free stack that all threads share. New cells are taken
// from the end of the used part, several at once.
#include <base/thread_free_list.h>
#include <runtime/handle.h>

#include <algorithm>
#include <sys/mman.h>
#include <sys/resource.h>

namespace polder::runtime {

const void* icd_dispatch = nullptr;

namespace {

constexpr uint64_t cells_max = uint64_t{1} << 25;

// How many cells a thread takes at once, so that threads seldom access the shared counter at the same time.
constexpr uint64_t fresh_cells = 16;

// How many cells to reserve: all, or as many as fit into a sixteenth of the process's address space where that is limited
// (ulimit -v).
uint64_t cells_to_reserve() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return cells_max;
    return std::min<uint64_t>(cells_max, limit.rlim_cur / 16 / sizeof(HandleCell));
}

}  // namespace

// Each member begins a cache line, so that rarely written members do not share one with free_head_.
alignas(64) constinit std::atomic<HandleCell*> HandleHeap::cells_{nullptr};
constinit uint64_t HandleHeap::reserved_ = 0;
alignas(64) constinit std::atomic<uint64_t> HandleHeap::used_{0};
alignas(64) constinit std::atomic<uint64_t> HandleHeap::free_head_{0};

// The cells that the calling thread has freed last (ThreadFreeList), linked like the shared stack.
struct HandleHeap::FreeCells {
    using Link = uint32_t;  // index + 1
    static HandleCell& cell(Link link) { return cells_.load(std::memory_order_relaxed)[link - 1]; }
    static Link link(const HandleCell& cell) { return static_cast<Link>(index_of(cell) + 1); }

    static Link next(Link piece) { return cell(piece).next_free.load(std::memory_order_relaxed); }
    static void set_next(Link piece, Link next) { cell(piece).next_free.store(next, std::memory_order_relaxed); }
    static void give_back(Link piece) { push(cell(piece)); }
};

bool HandleHeap::reserve() {
    static HandleCell* const memory = [] {
        const uint64_t count = cells_to_reserve();
        void* const cells = ::mmap(nullptr, count * sizeof(HandleCell), PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        reserved_ = cells == MAP_FAILED ? 0 : count;
        return cells == MAP_FAILED ? nullptr : static_cast<HandleCell*>(cells);
    }();
    cells_.store(memory, std::memory_order_release);
    return memory != nullptr;
}

HandleCell* HandleHeap::take_fresh() {
    if (!cells_.load(std::memory_order_acquire) && !reserve())
        return nullptr;
    uint64_t index = used_.load(std::memory_order_relaxed);
    do {
        if (index + fresh_cells > reserved_)
            return nullptr;
    } while (
        !used_.compare_exchange_weak(index, index + fresh_cells, std::memory_order_release, std::memory_order_relaxed));
    HandleCell* const first = cells_.load(std::memory_order_relaxed) + index;
    for (uint64_t i = fresh_cells; i-- > 1;)
        ThreadFreeList<FreeCells>::push(FreeCells::link(first[i]));
    return first;
}

// The head carries a counter beside the index so that a compare-and-swap cannot mistake a stack that was changed in
// between for the one it read (ABA). Cells are never unmapped, so reading the next index of a cell that another
// thread has just taken is harmless.
HandleCell* HandleHeap::pop() {
    uint64_t head = free_head_.load(std::memory_order_acquire);
    while (const uint32_t index_plus_1 = static_cast<uint32_t>(head)) {
        HandleCell& cell = cells_.load(std::memory_order_relaxed)[index_plus_1 - 1];
        const uint64_t next = cell.next_free.load(std::memory_order_relaxed);
        const uint64_t counter = (head >> 32) + 1;
        if (free_head_.compare_exchange_weak(head, (counter << 32) | next, std::memory_order_acquire))
            return &cell;
    }
    return nullptr;
}

void HandleHeap::push(HandleCell& cell) {
    uint64_t head = free_head_.load(std::memory_order_relaxed);
    uint64_t next_head = 0;
    do {
        cell.next_free.store(static_cast<uint32_t>(head), std::memory_order_relaxed);
        next_head = (((head >> 32) + 1) << 32) | (index_of(cell) + 1);
    } while (!free_head_.compare_exchange_weak(head, next_head, std::memory_order_release));
}

[[gnu::noinline]] HandleCell* HandleHeap::allocate_shared() {
    HandleCell* const cell = pop();
    return cell ? cell : take_fresh();
}

HandleCell* HandleHeap::allocate(Kind kind, Object* object) {
    const uint32_t own = ThreadFreeList<FreeCells>::pop();
    HandleCell* const cell = own ? &FreeCells::cell(own) : allocate_shared();
    if (!cell) [[unlikely]]
        return nullptr;
    cell->dispatch = icd_dispatch;
    cell->object = object;
    cell->api_references.store(1, std::memory_order_relaxed);
    cell->kind.store(kind, std::memory_order_release);
    return cell;
}

void HandleHeap::free(HandleCell* cell) {
    cell->kind.store(Kind::none, std::memory_order_release);
    ThreadFreeList<FreeCells>::push(FreeCells::link(*cell));
}

uint64_t HandleHeap::count(Kind kind) {
    const uint64_t used = used_.load(std::memory_order_acquire);
    const HandleCell* const cells = cells_.load(std::memory_order_relaxed);
    uint64_t number = 0;
    for (uint64_t index = 0; index < used; ++index)
        number += cells[index].kind.load(std::memory_order_relaxed) == kind;
    return number;
}

Object::~Object() {
    if (cell_)
        HandleHeap::free(cell_);
}

void* Object::expose(Kind kind) {
    cell_ = HandleHeap::allocate(kind, this);
    if (cell_)
        on_exposed();
    return cell_;
}

uint32_t Object::api_references() const { return cell_ ? cell_->api_references.load(std::memory_order_relaxed) : 0; }

void Object::retain_api() {
    // While the count was zero, the handle held no internal reference (see release_api), so it takes one again.
    if (cell_->api_references.fetch_add(1, std::memory_order_relaxed) == 0)
        retain_for_handle();
}

// One atomic step, also for the last reference: of two threads that wrongly release it at the same time, one gets an error.
bool Object::release_api() {
    uint32_t count = cell_->api_references.load(std::memory_order_relaxed);
    do {
        if (count == 0)
            return false;
    } while (!cell_->api_references.compare_exchange_weak(count, count - 1, std::memory_order_acq_rel));
    if (count == 1)
        release_for_handle();
    return true;
}

}  // namespace polder::runtime
