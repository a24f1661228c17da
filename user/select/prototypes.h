// SPDX-License-Identifier: BSD-2-Clause
/*
 * Parameters of system calls and of common library functions, for recording them where no debug
 * information is: a table of C prototypes that is part of the program. Those of system calls are
 * made by scripts/syscall-prototypes.sh of the kernel's header.
 */
#ifndef KX_PROTOTYPES_H
#define KX_PROTOTYPES_H

#include <stdbool.h>

#include "base/err.h"
#include "binary/value_path.h"

/*
 * Reads a prototype such as "ssize_t read(int fd, void *buf, size_t count)": integers, enums as
 * int, and pointers, of which "char *" is a string. @out's .function, and the values made of it, refer
 * to its .names: it must not be copied or moved. Errors: -EINVAL (not a prototype, or too long).
 */
struct kx_prototype {
	char names[512];
	struct kx_type_function function;
};

int kx_prototype_parse(const char *text, struct kx_prototype *out);

/*
 * The prototype of the system call @name, of the library function @name: false if there is none. A
 * library's function is meant only by its bare name ("read"), the caller checks that the module is
 * a library.
 */
bool kx_prototype_of_syscall(const char *name, struct kx_prototype *out);
bool kx_prototype_of_library(const char *name, struct kx_prototype *out);

/* kx_value_path_resolve, with the types of all prototypes. */
int kx_prototype_resolve(const struct kx_prototype *prototype,
			 const struct kx_value_request *request, struct kx_value_found *out,
			 struct kx_err *err);

#endif
