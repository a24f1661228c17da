// SPDX-License-Identifier: BSD-2-Clause
/* Runs a fuzz target over files and folders of the corpus, without a fuzzer. */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

static int replay(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data;
	struct stat st;
	size_t size;

	if (!f || fstat(fileno(f), &st))
		return perror(path), 1;
	data = malloc((size_t)st.st_size + 1);
	size = data ? fread(data, 1, (size_t)st.st_size, f) : 0;
	fclose(f);
	if (!data)
		return 1;
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned files = 0;

	for (int i = 1; i < argc; i++) {
		struct dirent *entry;
		DIR *dir = opendir(argv[i]);

		if (!dir)
			return perror(argv[i]), 1;
		while ((entry = readdir(dir))) {
			char path[4096];

			if (entry->d_name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "%s/%s", argv[i], entry->d_name);
			if (replay(path))
				return 1;
			files++;
		}
		closedir(dir);
	}
	printf("%u files\n", files);
	return files ? 0 : 1;
}
