// Writes modules of SPIR-V word by word, also such as no assembler makes. Ids are the caller's.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <spirv/unified1/spirv.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace polder::test {

class ModuleWriter {
public:
    explicit ModuleWriter(uint32_t bound = 1000) : words_{spv::MagicNumber, 0x00010400, 0, bound, 0} {}

    ModuleWriter& put(spv::Op opcode, const std::vector<uint32_t>& operands = {}) {
        words_.push_back(static_cast<uint32_t>(operands.size() + 1) << spv::WordCountShift | opcode);
        words_.insert(words_.end(), operands.begin(), operands.end());
        return *this;
    }
    // An instruction whose text follows its first operands, with others behind it.
    ModuleWriter& put_text(spv::Op opcode, std::vector<uint32_t> operands, std::string_view text,
                           const std::vector<uint32_t>& rest = {}) {
        const size_t first = operands.size();
        operands.resize(first + text.size() / 4 + 1);
        std::memcpy(&operands[first], text.data(), text.size());
        operands.insert(operands.end(), rest.begin(), rest.end());
        return put(opcode, operands);
    }
    // Capabilities, the memory model and, when it is named, an entry point.
    ModuleWriter& begin(uint32_t kernel = 0) {
        for (const spv::Capability each : {spv::CapabilityAddresses, spv::CapabilityLinkage, spv::CapabilityKernel,
                                           spv::CapabilityInt64, spv::CapabilityInt8})
            put(spv::OpCapability, {static_cast<uint32_t>(each)});
        put(spv::OpMemoryModel, {spv::AddressingModelPhysical64, spv::MemoryModelOpenCL});
        if (kernel != 0)
            put_text(spv::OpEntryPoint, {spv::ExecutionModelKernel, kernel}, "k");
        return *this;
    }
    [[nodiscard]] std::string bytes() const {
        return {reinterpret_cast<const char*>(words_.data()), words_.size() * sizeof(uint32_t)};
    }

private:
    std::vector<uint32_t> words_;
};

}  // namespace polder::test
