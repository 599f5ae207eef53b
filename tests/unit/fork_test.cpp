// Forks of a process whose threads are inside of Polder, without the rest of Polder.
#include <base/fork.h>
#include <base/mutex.h>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

// For the leak sanitizer: a child ends with what its parent made.
extern "C" int __lsan_is_turned_off() { return 1; }  // NOLINT(bugprone-reserved-identifier)

namespace polder {
namespace {

using fork_state::Inside;

enum class Answer : int { computed = 7, cut_off = 8 };

// Like an entry point: holds a lock inside, and none outside.
class Library {
public:
    Answer call() {
        const Inside inside;
        if (inside.is_cut_off())
            return Answer::cut_off;
        const Lock lock(mutex_);
        ++calls_;
        return Answer::computed;
    }

private:
    Mutex mutex_;
    uint64_t calls_ POLDER_GUARDED_BY(mutex_) = 0;
};

// The exit status of a child that makes a few calls; negative when the child hung and was killed.
int status_of_child(Library& library) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        Answer answer = Answer::computed;
        for (int i = 0; i < 5; ++i)
            answer = library.call();
        _exit(static_cast<int>(answer));
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(Fork, ChildrenOfAProcessWhoseThreadsCallAllTheTimeEnd) {
    Library library;
    std::atomic<bool> is_over{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
        threads.emplace_back([&] {
            while (!is_over)
                library.call();
        });
    // Threads that begin and end, too.
    threads.emplace_back([&] {
        while (!is_over)
            std::thread([&] { library.call(); }).join();
    });
    int computed = 0;
    for (int i = 0; i < 40; ++i) {
        const int status = status_of_child(library);
        EXPECT_TRUE(status == static_cast<int>(Answer::computed) || status == static_cast<int>(Answer::cut_off))
            << status;
        computed += status == static_cast<int>(Answer::computed);
    }
    is_over = true;
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_GT(computed, 0);
}

// A thread that is inside of the library until `leave`.
class ThreadInside {
public:
    ThreadInside() {
        while (!is_inside_)
            std::this_thread::yield();
    }
    void leave() {
        may_leave_ = true;
        thread_.join();
    }

private:
    std::atomic<bool> is_inside_{false};
    std::atomic<bool> may_leave_{false};
    std::thread thread_{[this] {
        const Inside inside;
        is_inside_ = true;
        while (!may_leave_)
            std::this_thread::yield();
    }};
};

TEST(Fork, AThreadThatStaysInsideCutsTheChildOffAndNotTheParent) {
    Library library;
    ThreadInside thread;
    EXPECT_EQ(status_of_child(library), static_cast<int>(Answer::cut_off));
    EXPECT_EQ(library.call(), Answer::computed);
    thread.leave();
    EXPECT_EQ(status_of_child(library), static_cast<int>(Answer::computed));
}

// The locks that were held when the first child came to be are held in its children, too.
TEST(Fork, AChildThatIsCutOffStaysSoWhenItForks) {
    Library library;
    ThreadInside thread;
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        const bool is_grandchild_cut_off = status_of_child(library) == static_cast<int>(Answer::cut_off);
        _exit(is_grandchild_cut_off ? static_cast<int>(library.call()) : 1);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(Answer::cut_off));
    thread.leave();
}

TEST(Fork, AForkInACallbackDoesNotWaitForItsOwnThread) {
    Library library;
    const Inside callback;
    EXPECT_EQ(status_of_child(library), static_cast<int>(Answer::computed));
}

TEST(Fork, ThreadsInFrontOfTheGateGoOnAfterTheFork) {
    Library library;
    std::atomic<int> calls{0};
    std::atomic<bool> may_leave{false};
    // Keeps the gate closed for as long as a fork waits.
    std::thread inside([&] {
        const Inside stays;
        while (!may_leave)
            std::this_thread::yield();
    });
    std::thread caller([&] {
        while (!may_leave) {
            library.call();
            ++calls;
        }
    });
    status_of_child(library);
    const int before = calls;
    while (calls == before)
        std::this_thread::yield();
    may_leave = true;
    inside.join();
    caller.join();
}

} // namespace
} // namespace polder
