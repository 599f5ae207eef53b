// Loops that search for a hash execute two iterations at once (paired_iterations.h): which loops do, and that their results stay.
#include "compiler_support.h"
#include "machine/host.h"
#include "parsed_ir.h"
#include "targets/host/loops/paired_iterations.h"

#include <array>
#include <bit>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <sys/mman.h>
#include <unistd.h>

namespace polder::compiler::test {
namespace {

// What differs from the loop that a search usually has.
struct Search {
    std::string type = "<16 x i32>", equal = "eq", load = "load";
    std::string in_head;  // further instructions
    std::string at_end;  // what the function does after the loop
    std::string begins_with = "%wanted";
    std::string count = "load i32, ptr %bound";
    unsigned steps = 40;
    bool goes_on_if_equal = false;
};

std::string loop_of(const Search& search) {
    const std::string vector = search.type;
    std::string text = "declare void @found(i32)\ndefine void @f(ptr %words, ptr %bound, ptr %out, i32 %n, " + vector +
                       " %wanted) {\nentry:\n  br label %head\nhead:\n"
                       "  %i = phi i32 [ 0, %entry ], [ %next, %latch ]\n"
                       "  %last = phi " +
                       vector + " [ zeroinitializer, %entry ], [ %old, %latch ]\n" +
                       "  %place = getelementptr [64 x i8], ptr %words, i32 %i\n  %v0 = " + search.load + " " + vector +
                       ", ptr %place\n" + search.in_head;
    for (unsigned i = 0; i < search.steps; ++i) {
        const std::string from = std::to_string(i), to = std::to_string(i + 1);
        text += "  %x" + to + " = xor " + vector + " %v" + from + ", " + (i == 0 ? search.begins_with : "%wanted") +
                "\n  %y" + to + " = add " + vector + " %x" + to + ", %wanted\n  %v" + to + " = mul " + vector + " %y" +
                to + ", %wanted\n";
    }
    const std::string result = "%v" + std::to_string(search.steps);
    const std::string targets =
        search.goes_on_if_equal ? "label %equal, label %latch\n" : "label %latch, label %equal\n";
    return text + "  %same = icmp " + search.equal + " " + vector + " " + result +
           ", %wanted\n  %mask = bitcast <16 x i1> %same to i16\n  %none = icmp eq i16 %mask, 0\n  br i1 %none, " +
           targets +
           "equal:\n  call void @found(i32 %i)\n  br label %latch\nlatch:\n"
           "  %joined_place = phi ptr [ %words, %head ], [ %bound, %equal ]\n"
           "  %joined_number = phi i32 [ %n, %head ], [ 0, %equal ]\n  %old = phi " +
           vector + " [ " + (search.begins_with == "%last" ? result : "%wanted") + ", %head ], [ %last, %equal ]\n" +
           "  %next = add i32 %i, 1\n  %count = " + search.count +
           "\n  %more = icmp ult i32 %next, %count\n"
           "  br i1 %more, label %head, label %end\nend:\n" +
           search.at_end + "  ret void\n}\n";
}

struct Paired {
    unsigned loops = 0;
    bool has_unknown_places = false;  // of the next iteration
};

Paired paired(const Search& search, const char* processor = "znver4") {
    llvm::LLVMContext context;
    const auto module = parsed(loop_of(search), context);
    if (!module)
        return {.loops = ~0U};
    Host target = host();
    target.triple = llvm::Triple("x86_64-unknown-linux-gnu");
    target.cpu = processor;
    target.features.clear();
    const auto machine = create_target_machine(target);
    llvm::Function& function = *module->getFunction("f");
    function.addFnAttr("target-cpu", processor);
    const unsigned loops = pair_iterations(function, machine->getTargetTransformInfo(function));
    EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs())) << loop_of(search);
    return {loops, llvm::any_of(function, [](const llvm::BasicBlock& block) { return block.getName() == "again"; })};
}

// How many loops have been changed.
unsigned pair(const Search& search, const char* processor = "znver4") { return paired(search, processor).loops; }

TEST(PairedIterations, AreThoseOfASearchByOneChain) { EXPECT_EQ(pair({}), 1U); }

TEST(PairedIterations, NeedRegistersForBoth) { EXPECT_EQ(pair({}, "haswell"), 0U); }

TEST(PairedIterations, AreNotThoseOfShortBlocks) { EXPECT_EQ(pair({.steps = 20}), 0U); }

// Each iteration begins with the result of the one before.
TEST(PairedIterations, AreNotThoseThatWaitForEachOther) { EXPECT_EQ(pair({.begins_with = "%last"}), 0U); }

// The units of the processor have enough to do.
TEST(PairedIterations, AreNotThoseOfBusyUnits) {
    std::string busy;
    for (unsigned i = 0; i < 250; ++i)
        busy += "  %busy" + std::to_string(i) + " = add <16 x i32> %v0, splat (i32 " + std::to_string(i) + ")\n";
    EXPECT_EQ(pair({.in_head = busy}), 0U);
}

TEST(PairedIterations, HaveNoEffectsBeforeTheQuestion) {
    EXPECT_EQ(pair({.load = "load volatile"}), 0U);
    EXPECT_EQ(pair({.in_head = "  store i32 %i, ptr %out\n"}), 0U);
    EXPECT_EQ(pair({.in_head = "  call void @found(i32 %i)\n"}), 0U);
    EXPECT_EQ(pair({.in_head = "  %part = udiv i32 %n, %i\n"}), 0U);
    EXPECT_EQ(pair({.in_head = "  %part = mul i32 %n, %i\n"}), 1U);
}

TEST(PairedIterations, AreThoseWhoseResultIsSeldomEqual) {
    EXPECT_EQ(pair({.equal = "ne"}), 0U);
    EXPECT_EQ(pair({.equal = "ult"}), 0U);
    EXPECT_EQ(pair({.type = "<16 x i16>"}), 0U);
    EXPECT_EQ(pair({.goes_on_if_equal = true}), 0U);
}

TEST(PairedIterations, HaveNoResultsAfterTheLoop) {
    EXPECT_EQ(pair({.at_end = "  store i32 %next, ptr %out\n"}), 0U);
    EXPECT_EQ(pair({.at_end = "  store i32 %n, ptr %out\n"}), 1U);
}

// What is done when an element is equal may change the number of iterations, and where they load from.
TEST(PairedIterations, LoadFromAnywhereWhereTheNextOneIsKnown) {
    const auto is_known = [](const Search& search) {
        const Paired result = paired(search);
        EXPECT_EQ(result.loops, 1U);
        return !result.has_unknown_places;
    };
    const std::string in_head = "  %first = load i32, ptr %bound\n",
                      from_there = "  %part = getelementptr i32, ptr %out, i32 ";
    EXPECT_TRUE(is_known({.count = "add i32 %n, 0"}));
    EXPECT_TRUE(
        is_known({.in_head = in_head + from_there + "%i\n  %other = load i32, ptr %part\n", .count = "add i32 %n, 0"}));
    EXPECT_FALSE(is_known({}));
    EXPECT_FALSE(is_known({.count = "add i32 %joined_number, 0"}));
    EXPECT_FALSE(is_known(
        {.in_head = in_head + from_there + "%first\n  %other = load i32, ptr %part\n", .count = "add i32 %n, 0"}));
    // The latch would load from a place that the program may not load from.
    EXPECT_EQ(pair({.in_head = "  %part = getelementptr i32, ptr %out, i32 %i\n", .count = "load i32, ptr %part"}), 1U);
    EXPECT_EQ(pair({.in_head = in_head, .count = "load i32, ptr %joined_place"}), 0U);
}

// An array that ends where the memory does.
class WordsAtTheEnd {
public:
    explicit WordsAtTheEnd(size_t count) : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
        const size_t bytes = count * sizeof(uint32_t);
        readable_ = (bytes + page_ - 1) / page_ * page_;
        begin_ = static_cast<std::byte*>(
            mmap(nullptr, readable_ + page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        mprotect(begin_ + readable_, page_, PROT_NONE);
        words_ = reinterpret_cast<uint32_t*>(begin_ + readable_ - bytes);
    }
    ~WordsAtTheEnd() { munmap(begin_, readable_ + page_); }
    WordsAtTheEnd(const WordsAtTheEnd&) = delete;
    WordsAtTheEnd& operator=(const WordsAtTheEnd&) = delete;

    [[nodiscard]] uint32_t* words() const { return words_; }

private:
    size_t page_, readable_ = 0;
    std::byte* begin_ = nullptr;
    uint32_t* words_ = nullptr;
};

constexpr uint32_t steps = 64;

uint32_t hash_of(uint32_t word) {
    uint32_t a = word, b = 0xefcdab89U, c = 0x98badcfeU;
    for (uint32_t i = 0; i < steps; ++i) {
        const uint32_t sum = a + (c ^ (b & (a ^ c))) + (0x5a827999U + i);
        a = c, c = b, b = std::rotl(sum, 7) + b;
    }
    return b;
}

// In one block, which the kernel has without relying on LLVM to unroll a loop.
constexpr const char* search = R"(
    #define STEP(k) sum = a + (c ^ (b & (a ^ c))) + (k); a = c; c = b; b = rotate(sum, (uint16)7) + b;
    #define FOUR(k) STEP(k) STEP(k + 1) STEP(k + 2) STEP(k + 3)
    #define SIXTEEN(k) FOUR(k) FOUR(k + 4) FOUR(k + 8) FOUR(k + 12)
    kernel __attribute__((reqd_work_group_size(1, 1, 1)))
    void search(global const uint16* words, global const uint* count, uint wanted, global uint* found) {
        for (uint n = 0; n < *count; ++n) {
            uint16 a = words[n], b = 0xefcdab89u, c = 0x98badcfeu, sum;
            SIXTEEN(0x5a827999u) SIXTEEN(0x5a8279a9u) SIXTEEN(0x5a8279b9u) SIXTEEN(0x5a8279c9u)
            if (!any(b == wanted))
                continue;
            found[++found[0]] = n;
        }
    })";

// The places of the word that is looked for: in which of 16 vectors, as bits.
TEST(PairedIterations, OfASearchFindAllPlacesInOrder) {
    const Outcome built = build(search);
    ASSERT_NE(built.module, nullptr) << built.log;
    for (uint32_t count = 1; count <= 16; ++count)
        for (const uint32_t places : {0U, 1U, 2U, 3U, 4U, 0x8000U, 0x5555U, 0xaaaaU, 0xffffU, 1U << (count - 1)}) {
            const WordsAtTheEnd array(size_t{count} * 16);
            std::vector<uint32_t> expected{0};
            for (uint32_t n = 0; n < count; ++n) {
                for (uint32_t i = 0; i < 16; ++i)
                    array.words()[n * 16 + i] = n * 16 + i;
                if ((places >> n & 1) == 0)
                    continue;
                array.words()[n * 16 + (n * 7) % 16] = 12345;
                ++expected[0];
                expected.push_back(n);
            }
            std::vector<uint32_t> found(18);
            const uint32_t wanted = hash_of(12345);
            Launch(built, "search").set(0, array.words()).set(1, &count).set(2, wanted).set(3, found.data()).run(1, 1);
            expected.resize(found.size());
            EXPECT_EQ(found, expected) << count << " vectors, places " << places;
        }
}

// Whether there is a next iteration is known only after the question: the last vector has the last word that is looked for, and nothing is readable behind it.
TEST(PairedIterations, OfASearchForAllPlacesEndAtTheLast) {
    const std::string text = std::string(search) + R"(
    kernel __attribute__((reqd_work_group_size(1, 1, 1)))
    void search_all(global const uint16* words, global const uint* count, uint wanted, global uint* found) {
        uint n = 0, places = 0;
        do {
            uint16 a = words[n], b = 0xefcdab89u, c = 0x98badcfeu, sum;
            SIXTEEN(0x5a827999u) SIXTEEN(0x5a8279a9u) SIXTEEN(0x5a8279b9u) SIXTEEN(0x5a8279c9u)
            if (any(b == wanted))
                found[++places] = n;
            ++n;
        } while (places < *count);
    }
    kernel __attribute__((reqd_work_group_size(1, 1, 1)))
    void search_unaligned(global const uint* words, global const uint* count, uint wanted, global uint* found) {
        uint n = 0, places = 0;
        do {
            uint16 a = vload16(n, words), b = 0xefcdab89u, c = 0x98badcfeu, sum;
            SIXTEEN(0x5a827999u) SIXTEEN(0x5a8279a9u) SIXTEEN(0x5a8279b9u) SIXTEEN(0x5a8279c9u)
            if (any(b == wanted))
                found[++places] = n;
            ++n;
        } while (places < *count);
    }
    kernel __attribute__((reqd_work_group_size(1, 1, 1)))
    void search_one(global const uint16* words, global uint* count, uint wanted, global uint* found) {
        for (uint n = 0; n < *count; ++n) {
            uint16 a = words[n], b = 0xefcdab89u, c = 0x98badcfeu, sum;
            SIXTEEN(0x5a827999u) SIXTEEN(0x5a8279a9u) SIXTEEN(0x5a8279b9u) SIXTEEN(0x5a8279c9u)
            if (!any(b == wanted))
                continue;
            found[1] = n;
            *count = 0;
        }
    })";
    const Outcome built = build(text);
    ASSERT_NE(built.module, nullptr) << built.log;
    for (const std::string name : {"search_all", "search_unaligned", "search_one"})
        for (const uint32_t count : {1U, 2U, 3U, 64U, 65U, 66U, 200U}) {
            const uint32_t behind = name == "search_unaligned" ? 8 : 0;
            const WordsAtTheEnd array(size_t{count} * 16 + behind);
            for (uint32_t i = 0; i < count * 16 + behind; ++i)
                array.words()[i] = i;
            // The first vector of a page, too.
            std::vector<uint32_t> places, found(3);
            if (count > 64 && name != "search_one")
                places.push_back(count - 64);
            places.push_back(count - 1);
            for (const uint32_t place : places)
                array.words()[place * 16 + 15] = 12345;
            uint32_t bound = name == "search_one" ? 1000000 : static_cast<uint32_t>(places.size());
            Launch(built, name)
                .set(0, array.words())
                .set(1, &bound)
                .set(2, hash_of(12345))
                .set(3, found.data())
                .run(1, 1);
            found.erase(found.begin());
            found.resize(places.size());
            EXPECT_EQ(found, places) << name << ", " << count << " vectors";
        }
}

}  // namespace
}  // namespace polder::compiler::test
