/** Scripts that complete the words of a command line, made from the commands' own lists of options. */
import type { OptionFacts } from "../arguments/option-facts";

/** A command as it is completed. */
export interface CommandFacts {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly OptionFacts[];
  /** Words that it takes in place of files. */
  readonly words: readonly string[] | undefined;
  /** What follows its first file: names from that file. */
  readonly names: "tensors" | "keys" | undefined;
}

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

const PROGRAM = "gguf-native";

/** The script for a shell. */
export function completionScript(shell: Shell, commands: readonly CommandFacts[]): string {
  return { bash, zsh, fish }[shell](commands);
}

/** Options as they are typed: --output, -o. */
function spellings(options: readonly OptionFacts[]): string[] {
  return options.flatMap(({ name, short }) => [`--${name}`, ...(short === undefined ? [] : [`-${short}`])]);
}

/** Whether the value of an option is the path of a file. */
function isPath({ value }: OptionFacts): boolean {
  return /FILE|OUT|PREFIX|FOLDER/.test(value ?? "");
}

function bash(commands: readonly CommandFacts[]): string {
  const all = [...commands.map(({ name }) => name), "help", "--help", "--version"];
  const cases = commands.map(({ name, options, words, names }) => {
    const lines = [`    ${name})`, `      options="${spellings(options).join(" ")}"`];
    if (words !== undefined) lines.push(`      words="${words.join(" ")}"`);
    if (names !== undefined) lines.push(`      names=${names}`);
    for (const option of options) {
      if (option.value === undefined) continue;
      const what = option.choices !== undefined ? `"${option.choices.join(" ")}"` : isPath(option) ? "files" : '""';
      const pattern = spellings([option]).join(" | ");
      lines.push(`      case $previous in ${pattern}) value=${what} ;; esac`);
    }
    return [...lines, "      ;;"].join("\n");
  });
  return `# Completion of ${PROGRAM} for bash. In ~/.bashrc: eval "$(${PROGRAM} completion bash)"
_gguf_native() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]}
  local options= words= names= value=none name i
  COMPREPLY=()
  if ((COMP_CWORD == 1)) || { ((COMP_CWORD == 2)) && [[ \${COMP_WORDS[1]} == help ]]; }; then
    COMPREPLY=($(compgen -W "${all.join(" ")}" -- "$current"))
    return
  fi
  case \${COMP_WORDS[1]} in
${cases.join("\n")}
  esac
  # Nothing in COMPREPLY: bash completes names of files.
  if [[ $value == files ]]; then return; fi
  if [[ $value != none ]]; then
    compopt +o default +o bashdefault 2>/dev/null
    COMPREPLY=($(compgen -W "$value" -- "$current"))
    return
  fi
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
    return
  fi
  if [[ $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    return
  fi
  if [[ $names ]]; then
    for ((i = 2; i < COMP_CWORD; i++)); do
      if [[ \${COMP_WORDS[i]} == -* ]]; then continue; fi
      while IFS= read -r name; do
        if [[ $name == "$current"* ]]; then COMPREPLY+=("$name"); fi
      done < <(${PROGRAM} completion "$names" "\${COMP_WORDS[i]/#\\~/$HOME}" 2>/dev/null)
      return
    done
  fi
}
complete -o bashdefault -o default -F _gguf_native ${PROGRAM}
`;
}

/** Text between single quotes, for zsh and fish; zsh's \`_arguments\` also knows brackets and colons. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function zsh(commands: readonly CommandFacts[]): string {
  const described = (text: string): string => text.replace(/[\\[\]:]/g, "\\$&");
  const specs = (option: OptionFacts): string[] => {
    const value =
      option.value === undefined
        ? ""
        : `:${described(option.value)}:${option.choices !== undefined ? `(${option.choices.join(" ")})` : isPath(option) ? "_files" : ""}`;
    return spellings([option]).map((spelling) => quoted(`*${spelling}[${described(option.description)}]${value}`));
  };
  const cases = commands.map(({ name, options, words, names }) => {
    const rest =
      words !== undefined
        ? `'*:word:(${words.join(" ")})'`
        : names !== undefined
          ? `'1:file:_files' '*:name: _gguf_native_names ${names}'`
          : "'*:file:_files'";
    return `    ${name})\n      _arguments ${[...options.flatMap(specs), rest].join(" \\\n        ")}\n      ;;`;
  });
  const list = commands.map(({ name, summary }) => `    ${quoted(`${name}:${summary.replaceAll(":", "\\:")}`)}`);
  return `#compdef ${PROGRAM}
# Completion of ${PROGRAM} for zsh. In ~/.zshrc, after compinit: eval "$(${PROGRAM} completion zsh)"
_gguf_native_names() {
  local word
  local -a names
  for word in "\${(@)words[2,CURRENT-1]}"; do
    if [[ $word == -* ]]; then continue; fi
    names=("\${(@f)$(${PROGRAM} completion $1 "\${(Q)\${word/#\\~/$HOME}}" 2>/dev/null)}")
    compadd -a names
    return
  done
}
_gguf_native() {
  local -a commands
  commands=(
${list.join("\n")}
    'help:help of a command'
  )
  if ((CURRENT == 2)) || { ((CURRENT == 3)) && [[ $words[2] == help ]]; }; then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
${cases.join("\n")}
  esac
}
if [[ $funcstack[1] == _gguf_native ]]; then
  _gguf_native "$@"
else
  compdef _gguf_native ${PROGRAM}
fi
`;
}

function fish(commands: readonly CommandFacts[]): string {
  const text = (value: string): string => `'${value.replace(/[\\']/g, "\\$&")}'`;
  const start = `complete -c ${PROGRAM}`;
  const lines = commands.flatMap(({ name, summary, options, words, names }) => {
    const isIt = `-n '__gguf_native_is ${name}'`;
    return [
      `${start} -f -n __gguf_native_has_none -a ${name} -d ${text(summary)}`,
      ...options.map((option) => {
        const { short, description, value, choices } = option;
        const letter = short === undefined ? "" : ` -s ${short}`;
        const kind =
          value === undefined
            ? ""
            : choices !== undefined
              ? ` -x -a ${text(choices.join(" "))}`
              : isPath(option)
                ? " -r -F"
                : " -x";
        return `${start} ${isIt}${letter} -l ${option.name}${kind} -d ${text(description)}`;
      }),
      ...(words === undefined ? [] : [`${start} ${isIt} -f -a ${text(words.join(" "))}`]),
      ...(names === undefined ? [] : [`${start} -n '__gguf_native_is ${name}' -a '(__gguf_native_names ${names})'`]),
    ];
  });
  return `# Completion of ${PROGRAM} for fish. In config.fish: ${PROGRAM} completion fish | source
function __gguf_native_is
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test $words[2] = $argv[1]
end
function __gguf_native_has_none
    set -l words (commandline -opc)
    test (count $words) -eq 1; or begin
        test (count $words) -eq 2; and test $words[2] = help
    end
end
function __gguf_native_names
    for word in (commandline -opc)[3..-1]
        string match -q -- '-*' $word; and continue
        ${PROGRAM} completion $argv[1] $word 2>/dev/null
        return
    end
end
${start} -f -n __gguf_native_has_none -a help -d 'help of a command'
${start} -n __gguf_native_has_none -l help -d 'all commands'
${start} -n __gguf_native_has_none -l version -d 'the version'
${lines.join("\n")}
`;
}
