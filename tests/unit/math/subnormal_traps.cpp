#include "subnormal_traps.h"

#if defined(__x86_64__) && defined(__linux__)
#include <csignal>
#include <cstdint>
#include <ucontext.h>
#include <xmmintrin.h>

namespace polder::math {
namespace {

constexpr uint32_t masks = 0x0900;  // of the exceptions for subnormal operands and results
constexpr uint32_t raised = 0x3f;
constexpr greg_t single_step = 0x100;

SubnormalCounts found;

struct Opcode {
    unsigned map;  // 1: behind 0f; 2: behind 0f 38
    unsigned byte;
};

// Of an SSE, AVX or AVX-512 instruction.
Opcode opcode_at(const uint8_t* at) {
    if (*at == 0x62)
        return {at[1] & 7U, at[4]};
    if (*at == 0xc4)
        return {at[1] & 0x1fU, at[3]};
    if (*at == 0xc5)
        return {1, at[2]};
    while (*at != 0x0f)
        ++at;
    return at[1] == 0x38 ? Opcode{2, at[2]} : Opcode{1, at[1]};
}

unsigned& count_of(Opcode opcode) {
    const unsigned low = opcode.byte & 0xf, high = opcode.byte >> 4;
    const bool is_fused = opcode.map == 2 && low >= 6 && (high == 0x9 || high == 0xa || high == 0xb);
    const bool is_product = opcode.map == 1 && (opcode.byte == 0x59 || opcode.byte == 0x5e || opcode.byte == 0x51);
    if (is_fused || is_product)
        return found.products;
    return opcode.map == 2 && (opcode.byte == 0x2c || opcode.byte == 0x2d) ? found.scalings : found.others;
}

void count_and_step(int, siginfo_t*, void* context) {
    auto& state = static_cast<ucontext_t*>(context)->uc_mcontext;
    const auto* const at = reinterpret_cast<const uint8_t*>(state.gregs[REG_RIP]);
    ++count_of(opcode_at(at));
    state.fpregs->mxcsr |= masks;
    state.gregs[REG_EFL] |= single_step;
}

void enable_again(int, siginfo_t*, void* context) {
    auto& state = static_cast<ucontext_t*>(context)->uc_mcontext;
    state.fpregs->mxcsr &= ~(masks | raised);
    state.gregs[REG_EFL] &= ~single_step;
}

class Handler {
public:
    Handler(int signal, void (*handle)(int, siginfo_t*, void*)) : signal_(signal) {
        struct sigaction action{};
        action.sa_sigaction = handle;
        action.sa_flags = SA_SIGINFO;
        sigaction(signal, &action, &before_);
    }
    Handler(const Handler&) = delete;
    Handler& operator=(const Handler&) = delete;
    ~Handler() { sigaction(signal_, &before_, nullptr); }

private:
    int signal_;
    struct sigaction before_{};
};

}  // namespace

bool can_count_subnormals() { return true; }

SubnormalCounts count_subnormals(const std::function<void()>& call) {
    found = {};
    const Handler exceptions(SIGFPE, count_and_step), steps(SIGTRAP, enable_again);
    const uint32_t before = _mm_getcsr();
    _mm_setcsr(before & ~(masks | raised));
    call();
    _mm_setcsr(before);
    return found;
}

}  // namespace polder::math
#else
namespace polder::math {

bool can_count_subnormals() { return false; }
SubnormalCounts count_subnormals(const std::function<void()>&) { return {}; }

}  // namespace polder::math
#endif
