// SPDX-License-Identifier: BSD-2-Clause
/* C++20 coroutines: 100 generators are resumed in turn, 50 values each; they are resumed by a thread, too. */
#include <coroutine>
#include <exception>
#include <thread>
#include <vector>

#define HAZARD_FUNCTIONS X(hz_value) X(hz_resume)
#include "hazard.h"

struct generator {
	struct promise_type {
		long value = 0;
		generator get_return_object() { return { std::coroutine_handle<promise_type>::from_promise(*this) }; }
		std::suspend_always initial_suspend() { return {}; }
		std::suspend_always final_suspend() noexcept { return {}; }
		std::suspend_always yield_value(long v) { value = v; return {}; }
		void return_void() {}
		void unhandled_exception() { std::terminate(); }
	};
	std::coroutine_handle<promise_type> handle;
};

HZ long hz_value(long n)
{
	HIT(hz_value);
	return n + 1;
}

static generator values(long first)
{
	for (long i = 0; i < 50; i++)
		co_yield hz_value(first + i);
}

HZ long hz_resume(generator *g)
{
	HIT(hz_resume);
	g->handle.resume();
	return g->handle.done() ? 0 : g->handle.promise().value;
}

int main(int argc, char **argv)
{
	target_options o = hazard_begin(argc, argv);
	std::vector<generator> all;
	long answer = 0, expected = 0;

	for (long n = 0; n < 100; n++)
		all.push_back(values(n));
	for (int round = 0; round <= 50; round++) {
		auto resume = [&] {
			for (auto &g : all)
				answer += hz_resume(&g);
		};
		if (round % 2)
			std::thread(resume).join();
		else
			resume();
	}
	for (auto &g : all)
		g.handle.destroy();
	for (long n = 0; n < 100; n++)
		for (long i = 0; i < 50; i++)
			expected += n + i + 1;
	return hazard_end(&o, answer, expected);
}
