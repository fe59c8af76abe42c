# Completes the commands, options and types of tcast in bash. All of them come from the program's own help.

# Prints the values that may follow option $1 of the help text in $2, if it lists them: `--invalid default|error`.
_tcast_values() {
  sed -nE "s/^ *(-[a-zA-Z],)?$1 ([a-z0-9_]+(\|[a-z0-9_]+)+)( .*)?\$/\2/p" <<< "$2" | tr '|' ' '
}

_tcast() {
  local tcast=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local commands=() help words place
  # The first words that are not options are the command; `graph` and `onnx` have commands of their own.
  for ((place = 1; place < COMP_CWORD && ${#commands[@]} < 2; ++place)); do
    [[ ${COMP_WORDS[place]} == -* ]] || commands+=("${COMP_WORDS[place]}")
    [[ ${commands[0]-} == @(graph|onnx) ]] || [[ ${#commands[@]} -eq 0 ]] || break
  done
  help=$("$tcast" "${commands[@]}" --help 2> /dev/null) || return

  case $previous in
    --to | --from | --candidates | --like)
      COMPREPLY=($(compgen -W "$("$tcast" types | awk 'NF == 0 { exit } NR > 1 { print $1 }')" -- "$word"))
      return ;;
    -*)
      words=$(_tcast_values "$previous" "$help")
      if [[ -n $words ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
        return
      fi ;;
  esac
  if [[ $word == -* ]]; then
    words=$(grep -oE '^ +(-[a-zA-Z],)?--[a-z-]+' <<< "$help" | grep -oE -- '--[a-z-]+')
  elif [[ $help == *$'\nCommands:\n'* ]]; then
    words=$(sed -n '/^Commands:$/,/^$/s/^  \([a-z-]*\) .*/\1/p' <<< "$help")
  else
    compopt -o default 2> /dev/null # names of files
    return
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}

complete -F _tcast tcast
