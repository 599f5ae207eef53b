// JITLink calls the functions of class ObjectLinking while it links one object, all on the calling thread. Symbols are resolved by
// runtime_symbols.h, after those of other objects. For a debugger, a copy of the ELF file gets the addresses of the loaded sections.
#include "loader.h"

#include "crash_guard.h"
#include "debugger_announcement.h"
#include "runtime_symbols.h"

#include <base/log.h>

#include <algorithm>
#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/Process.h>

namespace polder::compiler {
namespace {

namespace jitlink = llvm::jitlink;
namespace orc = llvm::orc;

using Memory = jitlink::JITLinkMemoryManager::FinalizedAlloc;

// Leaked: code may still be released while the process exits.
jitlink::InProcessMemoryManager& memory_manager() {
    static auto* const instance = new jitlink::InProcessMemoryManager(llvm::sys::Process::getPageSizeEstimate());
    return *instance;
}

class JitObject final : public LoadedObject {
public:
    JitObject() = default;
    JitObject(const JitObject&) = delete;
    JitObject& operator=(const JitObject&) = delete;
    ~JitObject() override {
        announcement_.reset();
        if (!memory_)
            return;
        try {
            llvm::consumeError(memory_manager().deallocate(std::move(memory_)));
        } catch (const std::bad_alloc&) {
            POLDER_LOG(compiler, "a kernel's code stays in memory: %s", "no memory to release it");
            memory_.release();
        }
    }

    [[nodiscard]] void* address() const override { return address_; }

    void* address_ = nullptr;
    Memory memory_;
    std::unique_ptr<DebuggerAnnouncement> announcement_;
};

using Elf = llvm::object::ELFObjectFile<llvm::object::ELF64LE>;

bool has_debug_information(const llvm::object::ObjectFile& file) {
    for (const llvm::object::SectionRef& section : file.sections()) {
        auto name = section.getName();
        if (!name)
            llvm::consumeError(name.takeError());
        else if (*name == ".debug_info")
            return true;
    }
    return false;
}

// A copy of `object` for a debugger: each section's header holds the address where the section was loaded. Empty without
// debug information.
std::string debugger_copy(llvm::MemoryBufferRef object, jitlink::LinkGraph& graph) {
    std::string copy = object.getBuffer().str();
    auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(copy, object.getBufferIdentifier()));
    if (!file) {
        llvm::consumeError(file.takeError());
        return {};
    }
    const auto* elf = llvm::dyn_cast<Elf>(file->get());
    if (elf == nullptr || !has_debug_information(**file))
        return {};
    for (const llvm::object::SectionRef& section : (*file)->sections()) {
        auto name = section.getName();
        if (!name) {
            llvm::consumeError(name.takeError());
            continue;
        }
        const auto* header = elf->getSection(section.getRawDataRefImpl());
        if (const jitlink::Section* loaded = graph.findSectionByName(*name);
            loaded != nullptr && (header->sh_flags & llvm::ELF::SHF_ALLOC) != 0)
            // The header lies in `copy`, which is ours to change.
            const_cast<llvm::object::ELF64LE::Shdr*>(header)->sh_addr =
                jitlink::SectionRange(*loaded).getStart().getValue();
    }
    return copy;
}

// JITLink calls these functions while it links one object, all on the calling thread.
class ObjectLinking final : public jitlink::JITLinkContext {
public:
    ObjectLinking(llvm::MemoryBufferRef object, const std::string& entry, std::span<const NamedAddress> others,
                  JitObject& result, llvm::Error& error)
        : JITLinkContext(nullptr), object_(object), entry_(entry), others_(others), result_(result), error_(error) {}

    jitlink::JITLinkMemoryManager& getMemoryManager() override { return memory_manager(); }

    void notifyFailed(llvm::Error error) override { error_ = llvm::joinErrors(std::move(error_), std::move(error)); }

    void lookup(const LookupMap& symbols,
                std::unique_ptr<jitlink::JITLinkAsyncLookupContinuation> continuation) override {
        jitlink::AsyncLookupResult found;
        for (const auto& [name, flags] : symbols) {
            void* address = address_of(std::string_view{*name});
            if (address == nullptr && flags == jitlink::SymbolLookupFlags::RequiredSymbol) {
                continuation->run(llvm::createStringError("the kernel's code needs the unknown symbol " + *name));
                return;
            }
            found[name] = {orc::ExecutorAddr::fromPtr(address), llvm::JITSymbolFlags::Exported};
        }
        continuation->run(std::move(found));
    }

    llvm::Error notifyResolved(jitlink::LinkGraph& graph) override {
        for (const jitlink::Symbol* symbol : graph.defined_symbols())
            if (symbol->hasName() && *symbol->getName() == entry_)
                result_.address_ = symbol->getAddress().toPtr<void*>();
        if (result_.address_ == nullptr)
            return llvm::createStringError("the kernel's code has no symbol " + entry_);
        debugger_copy_ = debugger_copy(object_, graph);
        return llvm::Error::success();
    }

    void notifyFinalized(Memory memory) override {
        result_.memory_ = std::move(memory);
        if (!debugger_copy_.empty())
            result_.announcement_ = std::make_unique<DebuggerAnnouncement>(std::move(debugger_copy_));
    }

private:
    [[nodiscard]] void* address_of(std::string_view name) const {
        const auto found = std::ranges::find(others_, name, &NamedAddress::symbol);
        return found == others_.end() ? runtime_symbol(name) : found->address;
    }

    const llvm::MemoryBufferRef object_;
    const std::string& entry_;
    const std::span<const NamedAddress> others_;
    JitObject& result_;
    llvm::Error& error_;
    std::string debugger_copy_;
};

llvm::Error link(std::string_view object, const std::string& entry, std::span<const NamedAddress> others,
                 JitObject& result) {
    const llvm::MemoryBufferRef buffer(llvm::StringRef(object.data(), object.size()), entry);
    // JITLink keeps names of symbols for longer than the graph, and destroying a name writes to its pool. So the pool must live longest.
    const auto names = std::make_shared<orc::SymbolStringPool>();
    auto graph = jitlink::createLinkGraphFromObject(buffer, names);
    if (!graph)
        return graph.takeError();
    llvm::Error error = llvm::Error::success();
    {
        const llvm::ErrorAsOutParameter is_written(&error);
        jitlink::link(std::move(*graph), std::make_unique<ObjectLinking>(buffer, entry, others, result, error));
    }
    return error;
}

}  // namespace

Result<std::unique_ptr<LoadedObject>> load_object(std::string_view object, const std::string& entry,
                                                  std::span<const NamedAddress> others) {
    auto loaded = std::make_unique<JitObject>();
    std::string failure;
    const auto crash = run_guarded([&] {
        if (llvm::Error error = link(object, entry, others, *loaded))
            failure = llvm::toString(std::move(error));
    });
    if (crash || !failure.empty())
        return fail(Status::out_of_resources, crash.value_or(failure));
    return std::unique_ptr<LoadedObject>(std::move(loaded));
}

}  // namespace polder::compiler
