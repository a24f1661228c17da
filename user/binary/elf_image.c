// SPDX-License-Identifier: BSD-2-Clause
#include "binary/elf_image.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "binary/script.h"

#define BUILD_ID_MAX 64 /* bytes; SHA-1 has 20, the longest in use (lld --build-id=0x...) is free */

struct section {
	const char *name; /* in the file's bytes, or "" */
	struct kx_elf_section s;
	bool is_plt;
};

struct kx_elf {
	char *path;
	uint8_t *data;
	size_t size;
	bool mapped; /* munmap data at close */
	Elf *handle;
	GElf_Ehdr ehdr;
	GElf_Phdr *phdrs;
	size_t nphdrs;
	struct section *sections; /* index 0 is the null section */
	size_t nsections;
	char build_id[BUILD_ID_MAX * 2 + 1];
};

/* Bytes of [offset, offset+size) that the file really has. */
static uint64_t clip(const struct kx_elf *elf, uint64_t offset, uint64_t size)
{
	if (offset >= elf->size)
		return 0;
	return size < elf->size - offset ? size : elf->size - offset;
}

static int check_header(const uint8_t *d, size_t size, const char *name, struct kx_err *err)
{
	uint16_t machine, type;
	char runs[64];

	if (size < SELFMAG || memcmp(d, ELFMAG, SELFMAG)) {
		if (kx_script_interpreter(d, size, runs, sizeof(runs)))
			return kx_err_set(err, -ENOEXEC,
					  "'%s' is a script, not an ELF binary; name the interpreter that runs it%s%s",
					  name, *runs ? ": " : "", runs);
		return kx_err_set(err, -ENOEXEC, "'%s' is not an ELF binary%s; name a program or a library", name,
				  size ? "" : ": it is empty");
	}
	if (size < EI_NIDENT)
		return kx_err_set(err, -EBADMSG, "'%s' is damaged: it ends inside the ELF header", name);
	if (d[EI_CLASS] == ELFCLASS32)
		return kx_err_set(err, -ENOTSUP,
				  "'%s' is a 32-bit binary; only 64-bit x86-64 ones can be traced", name);
	if (d[EI_CLASS] != ELFCLASS64)
		return kx_err_set(err, -EBADMSG, "'%s' is damaged: ELF class %u is unknown", name,
				  d[EI_CLASS]);
	if (d[EI_DATA] != ELFDATA2LSB)
		return kx_err_set(err, -ENOTSUP,
				  "'%s' is a big-endian binary; only x86-64 ones can be traced", name);
	if (size < sizeof(Elf64_Ehdr))
		return kx_err_set(err, -EBADMSG, "'%s' is damaged: it ends inside the ELF header", name);
	memcpy(&type, d + offsetof(Elf64_Ehdr, e_type), sizeof(type));
	memcpy(&machine, d + offsetof(Elf64_Ehdr, e_machine), sizeof(machine));
	if (machine != EM_X86_64)
		return kx_err_set(err, -ENOTSUP,
				  "'%s' is for another machine (ELF machine %u); only x86-64 binaries can be traced",
				  name, machine);
	if (type != ET_EXEC && type != ET_DYN)
		return kx_err_set(err, -ENOTSUP,
				  "'%s' is not an executable or a shared library (ELF type %u%s)", name,
				  type, type == ET_REL ? ", an unlinked object file" :
					type == ET_CORE ? ", a core dump" : "");
	return 0;
}

static int read_phdrs(struct kx_elf *elf, struct kx_err *err)
{
	size_t i, n;

	if (elf_getphdrnum(elf->handle, &n))
		goto damaged;
	/* Each takes 56 bytes of the file: a larger count is a lie. */
	if (n > elf->size / sizeof(Elf64_Phdr))
		goto damaged;
	elf->phdrs = calloc(n ? n : 1, sizeof(*elf->phdrs));
	if (!elf->phdrs)
		return kx_err_set(err, -ENOMEM, "no memory for the program headers of '%s'", elf->path);
	for (i = 0; i < n; i++)
		if (!gelf_getphdr(elf->handle, (int)i, &elf->phdrs[i]))
			goto damaged;
	elf->nphdrs = n;
	return 0;
damaged:
	return kx_err_set(err, -EBADMSG, "'%s' is damaged: its program headers lie outside the file",
			  elf->path);
}

/* A file without usable section headers is fine: the kernel does not need them either. */
static int read_sections(struct kx_elf *elf, struct kx_err *err)
{
	size_t i, n, shstrndx;
	const uint8_t *strs = NULL;
	uint64_t strs_size = 0;
	GElf_Shdr sh;
	Elf_Scn *scn;

	if (elf_getshdrnum(elf->handle, &n) || n > elf->size / sizeof(Elf64_Shdr))
		return 0;
	elf->sections = calloc(n ? n : 1, sizeof(*elf->sections));
	if (!elf->sections)
		return kx_err_set(err, -ENOMEM, "no memory for the section headers of '%s'", elf->path);
	if (!elf_getshdrstrndx(elf->handle, &shstrndx)) {
		scn = elf_getscn(elf->handle, shstrndx);
		if (scn && gelf_getshdr(scn, &sh) && sh.sh_type != SHT_NOBITS) {
			strs = elf->data + (sh.sh_offset < elf->size ? sh.sh_offset : 0);
			strs_size = clip(elf, sh.sh_offset, sh.sh_size);
		}
	}
	for (i = 0; i < n; i++) {
		struct section *s = &elf->sections[i];

		s->name = "";
		scn = elf_getscn(elf->handle, i);
		if (!scn || !gelf_getshdr(scn, &sh))
			break;
		if (sh.sh_name < strs_size &&
		    memchr(strs + sh.sh_name, 0, strs_size - sh.sh_name))
			s->name = (const char *)strs + sh.sh_name;
		s->is_plt = !strcmp(s->name, ".plt") || !strcmp(s->name, ".plt.sec") ||
			    !strcmp(s->name, ".plt.got");
		s->s.addr = sh.sh_flags & SHF_ALLOC ? sh.sh_addr : 0;
		s->s.offset = sh.sh_offset;
		s->s.size = sh.sh_size;
		if (sh.sh_type == SHT_NOBITS || sh.sh_type == SHT_NULL)
			continue;
		s->s.size = clip(elf, sh.sh_offset, sh.sh_size);
		if (s->s.size)
			s->s.data = elf->data + sh.sh_offset;
	}
	elf->nsections = i;
	return 0;
}

/* Notes: three words (name size, data size, type), then both, each padded (gABI, "Note Section"). */
static bool find_build_id(struct kx_elf *elf, const uint8_t *d, uint64_t size, uint64_t align)
{
	uint64_t pad = align == 8 ? 7 : 3;
	uint32_t w[3];

	while (size >= sizeof(w)) {
		uint64_t name, desc, i;

		memcpy(w, d, sizeof(w));
		name = sizeof(w) + (uint64_t)w[0];
		desc = (name + pad) & ~pad;
		if (desc > size || w[1] > size - desc)
			return false;
		if (w[2] == NT_GNU_BUILD_ID && w[0] == 4 && !memcmp(d + sizeof(w), "GNU", 4) &&
		    w[1] && w[1] <= BUILD_ID_MAX) {
			for (i = 0; i < w[1]; i++)
				sprintf(elf->build_id + 2 * i, "%02x", d[desc + i]);
			return true;
		}
		desc = (desc + w[1] + pad) & ~pad;
		if (desc >= size)
			return false;
		d += desc;
		size -= desc;
	}
	return false;
}

static void read_build_id(struct kx_elf *elf)
{
	struct kx_elf_section s;
	size_t i;

	for (i = 0; i < elf->nphdrs; i++) {
		const GElf_Phdr *p = &elf->phdrs[i];
		uint64_t size = clip(elf, p->p_offset, p->p_filesz);

		if (p->p_type == PT_NOTE && size &&
		    find_build_id(elf, elf->data + p->p_offset, size, p->p_align))
			return;
	}
	/* In a separate debug file the program headers may point past the end. */
	if (kx_elf_get_section(elf, ".note.gnu.build-id", &s) && s.data)
		find_build_id(elf, s.data, s.size, 4);
}

static int open_image(struct kx_elf *elf, struct kx_err *err)
{
	int rc;

	rc = check_header(elf->data, elf->size, elf->path, err);
	if (rc)
		return rc;
	elf_version(EV_CURRENT);
	elf->handle = elf_memory((char *)elf->data, elf->size);
	if (!elf->handle || elf_kind(elf->handle) != ELF_K_ELF ||
	    !gelf_getehdr(elf->handle, &elf->ehdr))
		return kx_err_set(err, -EBADMSG, "'%s' is damaged: %s", elf->path, elf_errmsg(-1));
	rc = read_phdrs(elf, err);
	if (!rc)
		rc = read_sections(elf, err);
	if (!rc)
		read_build_id(elf);
	return rc;
}

static int finish_open(struct kx_elf *elf, struct kx_elf **out, struct kx_err *err)
{
	int rc = open_image(elf, err);

	if (rc)
		kx_elf_close(elf);
	else
		*out = elf;
	return rc;
}

static struct kx_elf *new_elf(const char *path)
{
	struct kx_elf *elf = calloc(1, sizeof(*elf));

	if (!elf)
		return NULL;
	elf->path = strdup(path);
	if (!elf->path) {
		free(elf);
		return NULL;
	}
	return elf;
}

int kx_elf_open(const char *path, struct kx_elf **out, struct kx_err *err)
{
	/* O_NONBLOCK: opening a FIFO must not block. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;

	if (fd < 0)
		return kx_err_set(err, -errno, "cannot open '%s': %s", path, strerror(errno));
	rc = kx_elf_open_fd(fd, path, out, err);
	close(fd);
	return rc;
}

int kx_elf_open_fd(int fd, const char *path, struct kx_elf **out, struct kx_err *err)
{
	struct kx_elf *elf;
	struct stat st;
	void *map;
	int rc;

	if (fstat(fd, &st))
		return kx_err_set(err, -errno, "cannot stat '%s': %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return kx_err_set(err, -ENOEXEC, "'%s' is not an ELF binary: it is %s", path,
				  S_ISDIR(st.st_mode) ? "a folder" : "not a regular file");
	if (!st.st_size)
		return check_header(NULL, 0, path, err);
	elf = new_elf(path);
	if (!elf)
		return kx_err_set(err, -ENOMEM, "no memory to open '%s'", path);
	/* not a private mapping, even of data: the kernel writes breakpoints of uprobes into those */
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		rc = kx_err_set(err, -errno, "cannot map '%s': %s", path, strerror(errno));
		kx_elf_close(elf);
		return rc;
	}
	elf->data = map;
	elf->size = (size_t)st.st_size;
	elf->mapped = true;
	return finish_open(elf, out, err);
}

int kx_elf_open_memory(const void *data, size_t size, const char *name, struct kx_elf **out,
		       struct kx_err *err)
{
	struct kx_elf *elf = new_elf(name);

	if (!elf)
		return kx_err_set(err, -ENOMEM, "no memory to open '%s'", name);
	elf->data = (uint8_t *)data; /* only read: libelf gets no command to write */
	elf->size = size;
	return finish_open(elf, out, err);
}

void kx_elf_release_pages(const struct kx_elf *elf)
{
	/* a shared, read-only mapping of the file: nothing can be lost */
	if (elf->mapped)
		madvise(elf->data, elf->size, MADV_DONTNEED);
}

void kx_elf_close(struct kx_elf *elf)
{
	if (!elf)
		return;
	elf_end(elf->handle);
	if (elf->mapped)
		munmap(elf->data, elf->size);
	free(elf->sections);
	free(elf->phdrs);
	free(elf->path);
	free(elf);
}

Elf *kx_elf_handle(struct kx_elf *elf)
{
	return elf->handle;
}

const char *kx_elf_path(const struct kx_elf *elf)
{
	return elf->path;
}

uint64_t kx_elf_entry(const struct kx_elf *elf)
{
	return elf->ehdr.e_entry;
}

uint64_t kx_elf_missing(const struct kx_elf *elf)
{
	uint64_t end = elf->ehdr.e_shoff + (uint64_t)elf->ehdr.e_shnum * elf->ehdr.e_shentsize;

	if (end < elf->ehdr.e_shoff)
		end = UINT64_MAX;
	for (size_t i = 0; i < elf->nphdrs; i++) {
		const GElf_Phdr *p = &elf->phdrs[i];

		if (p->p_type == PT_LOAD && p->p_filesz <= UINT64_MAX - p->p_offset &&
		    p->p_offset + p->p_filesz > end)
			end = p->p_offset + p->p_filesz;
	}
	return end > elf->size ? end - elf->size : 0;
}

const uint8_t *kx_elf_bytes(const struct kx_elf *elf, size_t *size)
{
	*size = elf->size;
	return elf->data;
}

const char *kx_elf_build_id(const struct kx_elf *elf)
{
	return elf->build_id;
}

bool kx_elf_exec_segment(const struct kx_elf *elf, size_t index, struct kx_elf_section *out)
{
	size_t i;

	for (i = 0; i < elf->nphdrs; i++) {
		const GElf_Phdr *p = &elf->phdrs[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || index--)
			continue;
		out->addr = p->p_vaddr;
		out->offset = p->p_offset;
		/* What the file does not have is not code, and an address space has an end. */
		out->size = clip(elf, p->p_offset, p->p_filesz);
		if (out->size > UINT64_MAX - p->p_vaddr)
			out->size = UINT64_MAX - p->p_vaddr;
		out->data = out->size ? elf->data + p->p_offset : NULL;
		return true;
	}
	return false;
}

static bool exec_segment_of(const struct kx_elf *elf, uint64_t vaddr, struct kx_elf_section *out)
{
	size_t i;

	for (i = 0; kx_elf_exec_segment(elf, i, out); i++)
		if (vaddr >= out->addr && vaddr - out->addr < out->size)
			return true;
	return false;
}

const uint8_t *kx_elf_code(const struct kx_elf *elf, uint64_t vaddr, uint64_t size)
{
	struct kx_elf_section s;

	if (!exec_segment_of(elf, vaddr, &s) || size > s.size - (vaddr - s.addr))
		return NULL;
	return s.data + (vaddr - s.addr);
}

int kx_elf_offset(const struct kx_elf *elf, uint64_t vaddr, uint64_t *offset)
{
	struct kx_elf_section s;

	if (!exec_segment_of(elf, vaddr, &s))
		return -ENOENT;
	*offset = s.offset + (vaddr - s.addr);
	return 0;
}

int kx_elf_vaddr(const struct kx_elf *elf, uint64_t offset, uint64_t *vaddr)
{
	size_t i;

	for (i = 0; i < elf->nphdrs; i++) {
		const GElf_Phdr *p = &elf->phdrs[i];

		if (p->p_type == PT_LOAD && offset >= p->p_offset &&
		    offset - p->p_offset < p->p_filesz) {
			*vaddr = p->p_vaddr + (offset - p->p_offset);
			return 0;
		}
	}
	return -ENOENT;
}

bool kx_elf_section_at(const struct kx_elf *elf, size_t index, const char **name,
		       struct kx_elf_section *out)
{
	if (index >= elf->nsections)
		return false;
	*name = elf->sections[index].name;
	*out = elf->sections[index].s;
	return true;
}

Elf_Data *kx_elf_next_of_type(struct kx_elf *elf, uint32_t type, Elf_Scn **scn)
{
	while ((*scn = elf_nextscn(elf->handle, *scn))) {
		Elf64_Shdr *sh = elf64_getshdr(*scn);
		Elf_Data *data = sh && sh->sh_type == type ? elf_getdata(*scn, NULL) : NULL;

		if (data && data->d_buf)
			return data;
	}
	return NULL;
}

const char *kx_elf_find_symbol(struct kx_elf *elf, uint32_t type,
			       bool (*wanted)(void *ctx, const Elf64_Sym *sym, const char *name),
			       void *ctx)
{
	Elf_Scn *scn = NULL;
	Elf_Data *data;

	while ((data = kx_elf_next_of_type(elf, type, &scn))) {
		size_t strings = elf64_getshdr(scn)->sh_link;
		const Elf64_Sym *syms = data->d_buf;

		for (size_t i = 0; i < data->d_size / sizeof(*syms); i++) {
			const char *name = elf_strptr(elf->handle, strings, syms[i].st_name);

			if (name && wanted(ctx, &syms[i], name))
				return name;
		}
	}
	return NULL;
}

bool kx_elf_get_section(const struct kx_elf *elf, const char *name, struct kx_elf_section *out)
{
	size_t i;

	for (i = 1; i < elf->nsections; i++) {
		if (strcmp(elf->sections[i].name, name))
			continue;
		*out = elf->sections[i].s;
		return true;
	}
	return false;
}

bool kx_elf_in_plt(const struct kx_elf *elf, uint64_t vaddr)
{
	for (size_t i = 1; i < elf->nsections; i++) {
		const struct section *s = &elf->sections[i];

		if (s->is_plt && vaddr - s->s.addr < s->s.size)
			return true;
	}
	return false;
}
