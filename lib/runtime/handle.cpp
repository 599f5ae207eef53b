#include <runtime/handle.h>

#include <sys/mman.h>

namespace polder::runtime {

const void* icd_dispatch = nullptr;

namespace {

constexpr uint64_t max_cells = uint64_t{1} << 25;

} // namespace

constinit std::atomic<HandleCell*> HandleHeap::cells_{nullptr};
constinit std::atomic<uint64_t> HandleHeap::used_{0};
constinit std::atomic<uint64_t> HandleHeap::free_head_{0};

// Linked like the shared stack. A thread takes them again without a locked instruction and without meeting others.
struct HandleHeap::ThreadCells {
    static constexpr uint32_t count_max = 32;
    uint32_t head = 0;  // index + 1
    uint32_t count = 0;
    uint32_t room = 0;  // 0 before the first one and when the thread ends
    bool seen = false;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local HandleHeap::ThreadCells HandleHeap::own_;

// Gives back what a thread has that ends. Destructors that run later may still release handles.
struct HandleHeap::EndOfThread {
    ~EndOfThread() {
        own_.room = 0;
        while (HandleCell* const cell = pop_own())
            push(*cell);
    }
};

bool HandleHeap::reserve() {
    static HandleCell* const memory = [] {
        void* const cells = ::mmap(nullptr, max_cells * sizeof(HandleCell), PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
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
        if (index == max_cells)
            return nullptr;
    } while (!used_.compare_exchange_weak(index, index + 1, std::memory_order_release, std::memory_order_relaxed));
    return cells_.load(std::memory_order_relaxed) + index;
}

// The head carries a counter beside the index so that a compare-and-swap cannot mistake a stack that was changed in
// between for the one it read (ABA). Cells are never unmapped, so reading the next index of a cell that another
// thread just took is harmless.
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

HandleCell* HandleHeap::pop_own() {
    if (own_.head == 0)
        return nullptr;
    HandleCell& cell = cells_.load(std::memory_order_relaxed)[own_.head - 1];
    own_.head = cell.next_free.load(std::memory_order_relaxed);
    --own_.count;
    return &cell;
}

// False when the thread keeps no more.
bool HandleHeap::push_own(HandleCell& cell) {
    if (own_.count == own_.room) [[unlikely]] {
        if (own_.seen)
            return false;
        thread_local const EndOfThread at_exit;
        own_.seen = true;
        own_.room = ThreadCells::count_max;
    }
    cell.next_free.store(own_.head, std::memory_order_relaxed);
    own_.head = static_cast<uint32_t>(index_of(cell) + 1);
    ++own_.count;
    return true;
}

HandleCell* HandleHeap::allocate(Kind kind, Object* object) {
    HandleCell* cell = pop_own();
    if (!cell)
        cell = pop();
    if (!cell)
        cell = take_fresh();
    if (!cell)
        return nullptr;
    cell->dispatch = icd_dispatch;
    cell->object = object;
    cell->api_references.store(1, std::memory_order_relaxed);
    cell->kind.store(kind, std::memory_order_release);
    return cell;
}

void HandleHeap::free(HandleCell* cell) {
    cell->kind.store(Kind::none, std::memory_order_release);
    if (!push_own(*cell))
        push(*cell);
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
