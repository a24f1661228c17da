// SPDX-License-Identifier: BSD-2-Clause
/* Small functions of kxray's own that probes are measured on. */
#ifndef KX_OWN_FUNCTIONS_H
#define KX_OWN_FUNCTIONS_H

/* A cache line each, so that none straddles one and all are alike but for their start. */
#define KX_OWN_FUNCTION(name, code)                                                                \
	__asm__(".pushsection .text\n"                                                             \
		".type " #name ", @function\n"                                                     \
		".balign 64\n" #name ":\n" code                                                    \
		".size " #name ", .-" #name "\n"                                                   \
		".popsection\n");                                                                  \
	void name(void)

#endif
