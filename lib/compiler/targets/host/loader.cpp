#include "loader.h"

#include <base/log.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <kernel/printf.h>
#include <llvm/ExecutionEngine/Orc/AbsoluteSymbols.h>
#include <llvm/ExecutionEngine/Orc/Debugging/ELFDebugObjectPlugin.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/Support/MemoryBuffer.h>

// Conversions of half on processors without the instructions, and 128-bit arithmetic; in libgcc.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
float __extendhfsf2(uint16_t);
uint16_t __truncsfhf2(float);
uint16_t __truncdfhf2(double);
__extension__ typedef __int128 polder_int128;
__extension__ typedef unsigned __int128 polder_uint128;
polder_int128 __divti3(polder_int128, polder_int128);
polder_int128 __modti3(polder_int128, polder_int128);
polder_uint128 __udivti3(polder_uint128, polder_uint128);
polder_uint128 __umodti3(polder_uint128, polder_uint128);
}
// NOLINTEND(bugprone-reserved-identifier)

namespace polder::compiler {
namespace {

namespace orc = llvm::orc;

struct RuntimeSymbol {
    const char* name;
    void* address;
};

template <class F>
void* address_of(F* function) {
    return reinterpret_cast<void*>(function);
}

// All that compiled kernels may refer to: what LLVM's code generator falls back to, and printf.
std::vector<RuntimeSymbol> runtime_symbols() {
    using Float = float(float);
    using Float2 = float(float, float);
    using Float3 = float(float, float, float);
    using Double = double(double);
    using Double2 = double(double, double);
    using Double3 = double(double, double, double);
    return {
        {"polder_printf", address_of(&polder_printf)},
        {"memcpy", address_of<void*(void*, const void*, size_t)>(&std::memcpy)},
        {"memmove", address_of<void*(void*, const void*, size_t)>(&std::memmove)},
        {"memset", address_of<void*(void*, int, size_t)>(&std::memset)},
        {"memcmp", address_of<int(const void*, const void*, size_t)>(&std::memcmp)},
        {"fmaf", address_of<Float3>(&::fmaf)},
        {"fma", address_of<Double3>(&::fma)},
        {"fmodf", address_of<Float2>(&::fmodf)},
        {"fmod", address_of<Double2>(&::fmod)},
        {"fminf", address_of<Float2>(&::fminf)},
        {"fmin", address_of<Double2>(&::fmin)},
        {"fmaxf", address_of<Float2>(&::fmaxf)},
        {"fmax", address_of<Double2>(&::fmax)},
        {"floorf", address_of<Float>(&::floorf)},
        {"floor", address_of<Double>(&::floor)},
        {"ceilf", address_of<Float>(&::ceilf)},
        {"ceil", address_of<Double>(&::ceil)},
        {"truncf", address_of<Float>(&::truncf)},
        {"trunc", address_of<Double>(&::trunc)},
        {"rintf", address_of<Float>(&::rintf)},
        {"rint", address_of<Double>(&::rint)},
        {"nearbyintf", address_of<Float>(&::nearbyintf)},
        {"nearbyint", address_of<Double>(&::nearbyint)},
        {"roundf", address_of<Float>(&::roundf)},
        {"round", address_of<Double>(&::round)},
        {"sqrtf", address_of<Float>(&::sqrtf)},
        {"sqrt", address_of<Double>(&::sqrt)},
        {"ldexpf", address_of<float(float, int)>(&::ldexpf)},
        {"ldexp", address_of<double(double, int)>(&::ldexp)},
        {"frexpf", address_of<float(float, int*)>(&::frexpf)},
        {"frexp", address_of<double(double, int*)>(&::frexp)},
        {"exp2f", address_of<Float>(&::exp2f)},
        {"exp2", address_of<Double>(&::exp2)},
        {"log2f", address_of<Float>(&::log2f)},
        {"log2", address_of<Double>(&::log2)},
        {"expf", address_of<Float>(&::expf)},
        {"exp", address_of<Double>(&::exp)},
        {"logf", address_of<Float>(&::logf)},
        {"log", address_of<Double>(&::log)},
        {"__extendhfsf2", address_of(&__extendhfsf2)},
        {"__truncsfhf2", address_of(&__truncsfhf2)},
        {"__truncdfhf2", address_of(&__truncdfhf2)},
        {"__divti3", address_of(&__divti3)},
        {"__modti3", address_of(&__modti3)},
        {"__udivti3", address_of(&__udivti3)},
        {"__umodti3", address_of(&__umodti3)},
    };
}

// Tells GDB, through its JIT interface, of objects that have debug information. Without it all else works.
void announce_to_debugger(orc::LLJIT& jit) {
    auto* layer = llvm::dyn_cast<orc::ObjectLinkingLayer>(&jit.getObjLinkingLayer());
    if (layer == nullptr)
        return;
    constexpr bool require_debug_sections = true;
    constexpr bool register_at_once = true;
    llvm::Error error = llvm::Error::success();
    auto plugin = std::make_shared<orc::ELFDebugObjectPlugin>(jit.getExecutionSession(), require_debug_sections,
                                                              register_at_once, error);
    if (error)
        POLDER_LOG(compiler, "no debugger will know of kernels: %s", llvm::toString(std::move(error)).c_str());
    else
        layer->addPlugin(std::move(plugin));
}

class Session {
public:
    static Result<Session*> get() {
        static Session* const instance = create().release();
        if (instance == nullptr)
            return fail(Status::out_of_resources, "LLVM's JIT cannot be set up");
        return instance;
    }

    llvm::Expected<orc::JITDylib*> create_dylib() {
        auto dylib = jit_->createJITDylib("kernel " + std::to_string(serial_++));
        if (dylib)
            dylib->addToLinkOrder(*runtime_);
        return dylib ? llvm::Expected<orc::JITDylib*>(&*dylib) : dylib.takeError();
    }
    orc::LLJIT& jit() { return *jit_; }

private:
    static std::unique_ptr<Session> create() {
        auto jit = orc::LLJITBuilder()
                       .setPlatformSetUp(orc::setUpInactivePlatform)
                       .setLinkProcessSymbolsByDefault(false)
                       .create();
        if (!jit) {
            llvm::consumeError(jit.takeError());
            return nullptr;
        }
        auto session = std::make_unique<Session>();
        session->jit_ = std::move(*jit);
        orc::ExecutionSession& execution = session->jit_->getExecutionSession();
        execution.setErrorReporter([](llvm::Error error) { llvm::consumeError(std::move(error)); });
        announce_to_debugger(*session->jit_);
        orc::SymbolMap symbols;
        for (const RuntimeSymbol& symbol : runtime_symbols())
            symbols[execution.intern(symbol.name)] = {orc::ExecutorAddr::fromPtr(symbol.address),
                                                      llvm::JITSymbolFlags::Exported};
        session->runtime_ = &execution.createBareJITDylib("runtime");
        if (llvm::Error error = session->runtime_->define(orc::absoluteSymbols(std::move(symbols)))) {
            llvm::consumeError(std::move(error));
            return nullptr;
        }
        return session;
    }

    std::unique_ptr<orc::LLJIT> jit_;
    orc::JITDylib* runtime_ = nullptr;
    std::atomic<uint64_t> serial_{0};
};

class OrcObject final : public LoadedObject {
public:
    OrcObject(Session& session, orc::JITDylib& dylib) : session_(session), dylib_(dylib) {}
    ~OrcObject() override { llvm::consumeError(session_.jit().getExecutionSession().removeJITDylib(dylib_)); }

    llvm::Error load(std::string_view object, const std::string& entry) {
        if (llvm::Error error = session_.jit().addObjectFile(
                dylib_, llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(object.data(), object.size()), entry)))
            return error;
        auto address = session_.jit().lookup(dylib_, entry);
        if (!address)
            return address.takeError();
        address_ = address->toPtr<void*>();
        return llvm::Error::success();
    }
    [[nodiscard]] void* address() const override { return address_; }

private:
    Session& session_;
    orc::JITDylib& dylib_;
    void* address_ = nullptr;
};

} // namespace

Result<std::unique_ptr<LoadedObject>> load_object(std::string_view object, const std::string& entry) {
    POLDER_ASSIGN(session, Session::get());
    auto dylib = session->create_dylib();
    if (!dylib)
        return fail(Status::out_of_resources, llvm::toString(dylib.takeError()));
    auto loaded = std::make_unique<OrcObject>(*session, **dylib);
    if (llvm::Error error = loaded->load(object, entry))
        return fail(Status::out_of_resources, llvm::toString(std::move(error)));
    return std::unique_ptr<LoadedObject>(std::move(loaded));
}

} // namespace polder::compiler
