// SPDX-License-Identifier: BSD-2-Clause
#include "trace/labels.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static const char *const own_keys[] = {
	"host", "boot_id", "machine_id", "unit", "container", "pod"
};
#define FIRST_OF_PROCESSES 3

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int check_key(const char *key, size_t size, const char *text, struct kx_err *err)
{
	if (!size)
		return kx_err_set(err, -EINVAL,
				  "--label takes KEY=VALUE, as in env=production, not '%s'", text);
	if (size >= KX_LABEL_KEY_SIZE)
		return kx_err_set(
			err, -EINVAL,
			"the key of --label '%.80s' has %zu bytes; at most %d are allowed", text,
			size, KX_LABEL_KEY_SIZE - 1);
	for (size_t i = 0; i < size; i++)
		if (!is_letter(key[i]) &&
		    !(i && ((key[i] >= '0' && key[i] <= '9') || key[i] == '.' || key[i] == '-')))
			return kx_err_set(err, -EINVAL,
					  "the key of --label '%.80s' has other characters than "
					  "letters, digits, '_', '.' and "
					  "'-', or does not begin with a letter or '_'",
					  text);
	for (size_t i = 0; i < sizeof(own_keys) / sizeof(own_keys[0]); i++)
		if (strlen(own_keys[i]) == size && !memcmp(own_keys[i], key, size))
			return kx_err_set(err, -EINVAL,
					  "--label cannot set '%s': kxray finds it out itself; "
					  "choose another key",
					  own_keys[i]);
	return 0;
}

static int check_value(const char *value, const char *text, struct kx_err *err)
{
	size_t size = strlen(value);

	if (!size)
		return kx_err_set(err, -EINVAL,
				  "--label '%s' has no value; leave it out, or name one after '='",
				  text);
	if (size >= KX_LABEL_VALUE_SIZE)
		return kx_err_set(
			err, -EINVAL,
			"the value of --label '%.80s...' has %zu bytes; at most %d are allowed",
			text, size, KX_LABEL_VALUE_SIZE - 1);
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)value[i] < ' ' || value[i] == 0x7f)
			return kx_err_set(err, -EINVAL,
					  "the value of --label '%.*s' has a control character",
					  (int)(value - text - 1), text);
	return 0;
}

int kx_label_add(json_t *labels, const char *text, struct kx_err *err)
{
	const char *equals = strchr(text, '=');
	char key[KX_LABEL_KEY_SIZE];
	json_t *value;
	int r = check_key(text, equals ? (size_t)(equals - text) : 0, text, err);

	if (!r)
		r = check_value(equals + 1, text, err);
	if (r)
		return r;
	memcpy(key, text, (size_t)(equals - text));
	key[equals - text] = 0;
	if (json_object_get(labels, key))
		return kx_err_set(err, -EINVAL, "--label '%s' is given twice; a key has one value",
				  key);
	if (json_object_size(labels) == KX_MAX_LABELS)
		return kx_err_set(err, -EINVAL,
				  "--label '%s' is one too many; at most %d are allowed", key,
				  KX_MAX_LABELS);
	value = json_string(equals + 1);
	if (!value)
		return kx_err_set(err, -EINVAL, "the value of --label '%s' is not UTF-8", key);
	return json_object_set_new(labels, key, value)
		       ? kx_err_set(err, -ENOMEM, "out of memory for labels")
		       : 0;
}

const char *kx_session_host(const json_t *session)
{
	const char *name =
		json_string_value(json_object_get(json_object_get(session, "host"), "name"));

	return name ? name : "";
}

/* The value that all processes have for @key, or NULL. */
static const char *common_value(const json_t *processes, const char *key)
{
	const char *common = NULL, *value;
	const json_t *process;
	size_t i;

	json_array_foreach (processes, i, process) {
		value = json_string_value(json_object_get(process, key));
		if (!value || (common && strcmp(common, value)))
			return NULL;
		common = value;
	}
	return common;
}

static int set(json_t *labels, const char *key, const char *value)
{
	return value && *value ? json_object_set_new(labels, key, json_string(value)) : 0;
}

json_t *kx_session_labels(const json_t *session)
{
	const json_t *host = json_object_get(session, "host"),
		     *processes = json_object_get(session, "processes");
	json_t *labels = json_object(), *users = json_object_get(session, "labels"), *value;
	const char *key;
	int r = labels ? set(labels, "host", kx_session_host(session)) : -ENOMEM;

	for (size_t i = 1; i < sizeof(own_keys) / sizeof(own_keys[0]) && !r; i++)
		r = set(labels, own_keys[i],
			i < FIRST_OF_PROCESSES
				? json_string_value(json_object_get(host, own_keys[i]))
				: common_value(processes, own_keys[i]));
	json_object_foreach (users, key, value)
		if (!r && !json_object_get(labels, key))
			r = set(labels, key, json_string_value(value));
	if (r) {
		json_decref(labels);
		return NULL;
	}
	return labels;
}
