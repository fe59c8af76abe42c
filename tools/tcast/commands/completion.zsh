#compdef tcast
# Completes the commands, options and values of tcast in zsh. The program itself knows them.
_tcast() {
  local -a candidates
  candidates=("${(@f)$("${(Q)words[1]}" __complete "${(@Q)words[2,CURRENT]}" 2> /dev/null)}")
  if [[ -z ${candidates[1]-} ]]; then
    _files
    return
  fi
  candidates=("${(@)candidates//:/\\:}")
  candidates=("${(@)candidates/$'\t'/:}") # word:description
  _describe tcast candidates
}

if [[ ${funcstack[1]-} == _tcast ]]; then
  _tcast "$@" # a file of $fpath
else
  compdef _tcast tcast
fi
