# Completes the commands, options and values of tcast in bash. The program itself knows them.
_tcast() {
  local word=${COMP_WORDS[COMP_CWORD]} candidates
  candidates=$("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null | cut -f 1)
  if [[ -z $candidates ]]; then
    compopt -o default 2> /dev/null # names of files
    return
  fi
  COMPREPLY=($(compgen -W "$candidates" -- "$word"))
}

complete -F _tcast tcast
