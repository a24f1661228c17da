// SPDX-License-Identifier: BSD-2-Clause
/* Calls functions of C++ with strings, references, members of classes, and prints what it called them with. */
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#ifdef __clang__
#define TRACED __attribute__((noinline))
#else
#define TRACED __attribute__((noipa))
#endif
#define USE(x) ({ __asm__ volatile("" : : "r"(x) : "memory"); })

enum class mode : unsigned char { off, on = 200 };

struct base {
	virtual ~base() = default;
	int weight = 17;
};

struct item : base {
	std::string name;
	mode state = mode::on;
	std::string *owner = nullptr;

	long use(std::string_view text, int n) const;
};

namespace shop
{
struct guarded { /* two words, passed by its address, as its copies are not trivial */
	long a, b;
	guarded(long x, long y) : a(x), b(y) {}
	guarded(const guarded &other) : a(other.a), b(other.b) {}
};

TRACED size_t by_text(std::string s, const std::string &r, std::string_view v, const char *c)
{
	USE(&s), USE(&r), USE(c);
	return v.size();
}

TRACED int by_item(const item &i, item *p, item &&moved)
{
	USE(&i), USE(p), USE(&moved);
	return i.weight;
}

TRACED long by_copy(guarded g, int n)
{
	USE(&g), USE(n);
	return g.b;
}

TRACED std::string make(int n)
{
	USE(n);
	return std::string(static_cast<size_t>(n), 'm');
}
} // namespace shop

TRACED long item::use(std::string_view text, int n) const
{
	USE(this), USE(n);
	return n + static_cast<long>(text.size());
}

static std::string calls;

/* As JSON; more than @most bytes are cut. */
static std::string quoted(std::string_view s, size_t most = 64)
{
	std::string out = "\"";
	char hex[8];

	for (size_t i = 0; i < s.size() && i < most; i++) {
		const unsigned char c = static_cast<unsigned char>(s[i]);

		if (!c)
			out += "\\\\x00";
		else if (c == '"' || c == '\\' || c < ' ')
			snprintf(hex, sizeof(hex), "\\u%04x", c), out += hex;
		else
			out += s[i];
	}
	return out + (s.size() > most ? "\xe2\x80\xa6\"" : "\"");
}

static void add(const char *function, const std::string &result, const std::string &args)
{
	calls += std::string(calls.empty() ? "" : ", ") + "{\"function\": \"" + function + "\", \"result\": " + result + ", \"args\": {" +
		 args + "}}";
}

static void call_text(const std::string &s, const std::string &r, std::string_view v)
{
	char c[] = "text";

	shop::by_text(s, r, v, c);
	add("shop::by_text", std::to_string(v.size()), "\"s\": " + quoted(s, 40) + ", \"r\": " + quoted(r, 40) + ", \"v\": " + quoted(v, 40));
}

int main()
{
	const std::string nul("a\0b", 3), forty(40, 'x'), longer(41, 'y'), owner = "the owner of it, on the heap";
	item i, p;

	call_text("", "short", "view");
	call_text("fifteen chars..", "sixteen chars...", longer);
	call_text(nul, "\"quoted\\", "");
	call_text("s", forty, nul);
	i.name = "the name of an item, on the heap";
	p.owner = const_cast<std::string *>(&owner);
	p.name = "p";
	shop::by_item(i, &p, std::move(p));
	add("shop::by_item", "17", "\"i.name\": " + quoted(i.name) + ", \"i.state\": \"on\", \"p->owner[0]\": " + quoted(owner) +
	    ", \"moved.name\": \"p\"");
	shop::by_copy(shop::guarded(5, -6), 7);
	add("shop::by_copy", "-6", "\"g.a\": 5, \"g.b\": -6, \"n\": 7");
	shop::make(3);
	add("shop::make", "\"mmm\"", "\"n\": 3");
	i.use("self", 4);
	add("item::use", "8", "\"this->name\": " + quoted(i.name) + ", \"text\": \"self\", \"n\": 4");
	std::printf("{\"calls\": [%s]}\n", calls.c_str());
}
