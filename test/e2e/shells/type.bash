# Completes each line of stdin as readline does, and prints the proposals.
# $1: the completion script.
source "$1"
compopt() { :; }
while IFS= read -r line; do
  COMP_LINE=$line COMP_POINT=${#line}
  _crigc
  printf '%s\n' "${COMPREPLY[*]}"
done
