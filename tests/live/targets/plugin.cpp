// SPDX-License-Identifier: BSD-2-Clause
/* The plugin of dlopener: throws, and catches what has passed the program's own C frames. */

extern "C" void plugin_throw(long n)
{
	throw n;
}

/* How many of @times calls of @callback ended in the expected exception. */
extern "C" long plugin_run(long (*callback)(long), long times)
{
	long right = 0;

	for (long n = 0; n < times; n++) {
		try {
			callback(n);
		} catch (long thrown) {
			right += thrown == n;
		}
	}
	return right;
}
