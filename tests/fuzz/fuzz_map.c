// SPDX-License-Identifier: BSD-2-Clause
/* Maps: kxray's own and binaries with an xray_instr_map. */
#include "fuzz.h"
#include "trace/map_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kx_map map;
	char path[64];
	int fd = fuzz_file(data, size, path, sizeof(path));

	if (kx_map_read(path, &map, NULL) == 0) {
		for (uint32_t id = 0; id < map.nfunctions + 2 && id < 4096; id++) {
			if (!kx_map_name(&map, id) || !kx_map_module_name(&map, id))
				abort();
		}
		kx_map_free(&map);
	}
	close(fd);
	return 0;
}
