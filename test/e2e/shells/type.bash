# Completes each line of stdin, split at spaces and equals signs as readline does, and prints the proposals.
# $1: the completion script.
source "$1"
compopt() { :; }
while IFS= read -r line; do
  spaced=${line//=/ = }
  read -ra COMP_WORDS <<< "$spaced"
  [[ $line == *" " || $line == *= ]] && COMP_WORDS+=("")
  [[ $line == *= ]] && unset 'COMP_WORDS[-1]'
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  _crigc
  printf '%s\n' "${COMPREPLY[*]}"
done
