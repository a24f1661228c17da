// SPDX-License-Identifier: BSD-2-Clause
/* The scripts that shells load: each asks `kxray help --complete` at each TAB (completion.h). */
#include <stddef.h>
#include <string.h>

#include "cmd/completion.h"

/*
 * bash breaks words at ':' and '=' as well. The words of the line are put together again for kxray,
 * and what precedes the last such character is cut off its answers, since bash replaces only what
 * follows.
 */
static const char bash[] =
	"# bash completion for kxray; made by: kxray help --completion bash\n"
	"_kxray()\n"
	"{\n"
	"	local words=() first=() rest=$COMP_LINE blank word adds cut='' at=0 i n\n"
	"	COMPREPLY=()\n"
	"	for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do\n"
	"		blank=${rest%%[![:space:]]*}\n"
	"		word=${COMP_WORDS[i]}\n"
	"		rest=${rest#\"$blank\"}\n"
	"		rest=${rest#\"$word\"}\n"
	"		n=$((${#COMP_LINE} - ${#rest} - COMP_POINT))\n"
	"		((i == COMP_CWORD && n > 0)) && word=${word:0:${#word}-n}\n"
	"		if [[ $i -gt 0 && -z $blank ]]; then\n"
	"			words[-1]+=$word\n"
	"		else\n"
	"			words+=(\"$word\")\n"
	"			first+=(\"$i\")\n"
	"		fi\n"
	"		if ((i == COMP_CWORD)); then\n"
	"			at=$((${#words[@]} - 1))\n"
	"			word=${words[at]}\n"
	"			[[ $word == [\\'\\\"]* ]] || cut=${word%\"${word##*[:=]}\"}\n"
	"		fi\n"
	"	done\n"
	"	words=(\"${words[@]//[\\'\\\"\\\\]/}\")\n"
	"	cut=${cut//[\\'\\\"\\\\]/}\n"
	"	word=${words[at]#\"$cut\"}\n"
	"	while IFS=$'\\t' read -r i _; do\n"
	"		if [[ -z $adds ]]; then adds=$i; else COMPREPLY+=(\"${i#\"$cut\"}\"); fi\n"
	"	done < <(\"$1\" help --complete \"$at\" \"${words[@]}\" 2>/dev/null)\n"
	"	[[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[:=] ]] && compopt -o nospace "
	"2>/dev/null\n"
	"	case $adds in\n"
	"	command*)\n"
	"		n=${adds#command }\n"
	"		if declare -F _command_offset >/dev/null; then\n"
	"			_command_offset \"${first[n]}\"\n"
	"			return\n"
	"		fi\n"
	"		if [[ $at == \"$n\" ]]; then adds=programs; else adds=files; fi\n"
	"		;;\n"
	"	esac\n"
	"	if [[ $adds == files || $adds == programs ]]; then\n"
	"		compopt -o filenames 2>/dev/null\n"
	"		while read -r i; do COMPREPLY+=(\"$i\"); done < <(\n"
	"			[[ $adds == files ]] || compgen -c -- \"$word\" | sort -u\n"
	"			compgen -f -- \"$word\")\n"
	"	fi\n"
	"}\n"
	"complete -F _kxray kxray\n";

static const char zsh[] = "#compdef kxray\n"
			  "# zsh completion for kxray; made by: kxray help --completion zsh\n"
			  "local adds line word about\n"
			  "local -a lines typed open closed\n"
			  "typed=(\"${(@Q)words}\")\n"
			  "typed[CURRENT]=${(Q)PREFIX}\n"
			  "lines=(\"${(@f)$(\"${typed[1]}\" help --complete $((CURRENT - 1)) "
			  "\"${(@)typed}\" 2>/dev/null)}\")\n"
			  "adds=$lines[1]\n"
			  "for line in \"${(@)lines[2,-1]}\"; do\n"
			  "	word=${line%%$'\\t'*} about=${line#*$'\\t'}\n"
			  "	case $word in\n"
			  "	*[:=]) open+=(\"${word//:/\\\\:}:$about\") ;;\n"
			  "	*) closed+=(\"${word//:/\\\\:}:$about\") ;;\n"
			  "	esac\n"
			  "done\n"
			  "(( $#closed )) && _describe kxray closed\n"
			  "(( $#open )) && _describe kxray open -S ''\n"
			  "case $adds in\n"
			  "files)\n"
			  "	[[ $PREFIX == --*=* ]] && compset -P '*='\n"
			  "	_files\n"
			  "	;;\n"
			  "programs)\n"
			  "	_command_names -e\n"
			  "	_files\n"
			  "	;;\n"
			  "command*)\n"
			  "	words=(\"${(@)words[${adds#command } + 1,-1]}\")\n"
			  "	(( CURRENT -= ${adds#command } ))\n"
			  "	_normal\n"
			  "	;;\n"
			  "esac\n";

static const char fish[] =
	"# fish completion for kxray; made by: kxray help --completion fish\n"
	"function __kxray_complete\n"
	"	set -l words (commandline -opc)\n"
	"	set -l current (commandline -ct)\n"
	"	set -q current[1]; or set current ''\n"
	"	set -l word (string replace -r '^[\\'\"]' '' -- $current[1] | string replace -ra "
	"'\\\\\\\\(.)' '$1')\n"
	"	set -l lines ($words[1] help --complete (count $words) $words $word 2>/dev/null)\n"
	"	set -q lines[2]; and printf '%s\\n' $lines[2..-1]\n"
	"	switch \"$lines[1]\"\n"
	"		case files\n"
	"			set -l option (string match -r '^--[^=]*=' -- $word)\n"
	"			__fish_complete_path (string replace -r '^--[^=]*=' '' -- $word) | "
	"string replace -r -- '^' \"$option\"\n"
	"		case programs\n"
	"			__fish_complete_command\n"
	"			__fish_complete_path $word\n"
	"		case 'command *'\n"
	"			__fish_complete_subcommand --fcs-skip=(string replace 'command ' "
	"'' -- $lines[1])\n"
	"	end\n"
	"end\n"
	"complete -c kxray -f -a '(__kxray_complete)'\n";

const char *kx_completion_script(const char *shell)
{
	return !strcmp(shell, "bash")	? bash
	       : !strcmp(shell, "zsh")	? zsh
	       : !strcmp(shell, "fish") ? fish
					: NULL;
}
