# Types each line of stdin into an interactive zsh behind a terminal, presses tab, and prints what stands there then.
# $1: the completion script; $2: an empty folder.
zmodload zsh/zpty
out=$2/lines
: > $out
zpty z zsh -f -i
zpty -w z "PROMPT= PS1= KEYTIMEOUT=1; LISTMAX=10000; autoload -Uz compinit && compinit -u -D; source $1; bindkey '^I' complete-word"
zpty -w z "keep() { print -r -- \"\$BUFFER\" >> $out; BUFFER=; }; zle -N keep; bindkey '^X' keep; print REA\"\"DY"
zpty -r z started '*READY*'
integer count=0
while read -r line; do
  count+=1
  zpty -w -n z "$line"$'\t\x18'
  # Typed faster than it is read, the next line would lose its start.
  repeat 100; do
    # What it draws has to be taken, or it blocks.
    while zpty -r -t z drawn; do :; done
    [[ $(wc -l < $out) -ge $count ]] && break
    sleep 0.05
  done
done
zpty -d z
cat $out
