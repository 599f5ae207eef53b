#include <runtime/handle.h>

#include <sys/mman.h>

namespace polder::runtime {

const void* icd_dispatch = nullptr;

namespace {

constexpr uint32_t max_cells = 1u << 25;

// Free cells form a stack of indices. The head carries a counter beside the index so that a
// compare-and-swap cannot mistake a stack that was changed in between for the one it read (ABA). Cells are
// never unmapped, so reading the next index of a cell that another thread just took is harmless.
struct Heap {
    HandleCell* cells = nullptr;
    std::atomic<uint32_t> used{0};       // cells ever handed out
    std::atomic<uint64_t> free_head{0};  // (counter << 32) | (index + 1)

    Heap() {
        void* memory = ::mmap(nullptr, size_t{max_cells} * sizeof(HandleCell), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory != MAP_FAILED)
            cells = static_cast<HandleCell*>(memory);
    }
};

// Never destroyed: applications release handles from static destructors.
Heap& heap() {
    static Heap* const instance = new Heap;
    return *instance;
}

HandleCell* pop_free(Heap& heap) {
    uint64_t head = heap.free_head.load(std::memory_order_acquire);
    while (const uint32_t index_plus_1 = static_cast<uint32_t>(head)) {
        HandleCell& cell = heap.cells[index_plus_1 - 1];
        const uint64_t next = cell.next_free.load(std::memory_order_relaxed);
        const uint64_t counter = (head >> 32) + 1;
        if (heap.free_head.compare_exchange_weak(head, (counter << 32) | next, std::memory_order_acquire))
            return &cell;
    }
    return nullptr;
}

} // namespace

HandleCell* HandleHeap::allocate(Kind kind, Object* object) {
    Heap& h = heap();
    if (!h.cells)
        return nullptr;
    HandleCell* cell = pop_free(h);
    if (!cell) {
        uint32_t index = h.used.load(std::memory_order_relaxed);
        do {
            if (index == max_cells)
                return nullptr;
        } while (!h.used.compare_exchange_weak(index, index + 1, std::memory_order_relaxed));
        cell = &h.cells[index];
    }
    cell->dispatch = icd_dispatch;
    cell->object = object;
    cell->api_references.store(1, std::memory_order_relaxed);
    cell->kind.store(kind, std::memory_order_release);
    return cell;
}

void HandleHeap::free(HandleCell* cell) {
    Heap& h = heap();
    cell->kind.store(Kind::none, std::memory_order_release);
    const uint64_t index_plus_1 = static_cast<uint64_t>(cell - h.cells) + 1;
    uint64_t head = h.free_head.load(std::memory_order_relaxed);
    uint64_t next_head = 0;
    do {
        cell->next_free.store(static_cast<uint32_t>(head), std::memory_order_relaxed);
        next_head = (((head >> 32) + 1) << 32) | index_plus_1;
    } while (!h.free_head.compare_exchange_weak(head, next_head, std::memory_order_release));
}

HandleCell* HandleHeap::check(const void* handle, Kind kind) {
    const Heap& h = heap();
    const auto address = reinterpret_cast<uintptr_t>(handle);
    const auto base = reinterpret_cast<uintptr_t>(h.cells);
    // One unsigned comparison covers null, foreign pointers below and above, and a heap without memory.
    if (address - base >= uintptr_t{h.used.load(std::memory_order_acquire)} * sizeof(HandleCell) ||
        address % sizeof(HandleCell) != 0)
        return nullptr;
    HandleCell* cell = &h.cells[(address - base) / sizeof(HandleCell)];
    return cell->kind.load(std::memory_order_acquire) == kind ? cell : nullptr;
}

Object::~Object() {
    if (cell_)
        HandleHeap::free(cell_);
}

void* Object::expose(Kind kind) {
    cell_ = HandleHeap::allocate(kind, this);
    if (cell_)
        retain();
    return cell_;
}

uint32_t Object::api_references() const { return cell_ ? cell_->api_references.load(std::memory_order_relaxed) : 0; }

void Object::retain_api() {
    // A count of zero held no internal reference: see release_api.
    if (cell_->api_references.fetch_add(1, std::memory_order_relaxed) == 0)
        retain();
}

bool Object::release_api() {
    uint32_t count = cell_->api_references.load(std::memory_order_relaxed);
    do {
        if (count == 0)
            return false;
    } while (!cell_->api_references.compare_exchange_weak(count, count - 1, std::memory_order_acq_rel));
    if (count == 1) {
        on_api_released();
        release();
    }
    return true;
}

} // namespace polder::runtime
