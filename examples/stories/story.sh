# What the stories share: they find the program, show what they run, and check what it prints.
#
# A story's `run` reads this file, calls `story` once, then `run`, `figure` and `promise`. It ends with
# status 1 if a promise is broken, or with that of a command that fails. ORRERY is the absolute path of the
# program; without it, it is the one of build/release, or else of build/dev. Commands run in the
# story's folder.
set -euo pipefail
stories=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$(dirname "$0")"

if [[ -z ${ORRERY:-} ]]; then
  for build in release dev; do
    ORRERY=$stories/../../build/$build/bin/orrery
    [[ -x $ORRERY ]] && break
  done
fi
[[ -x $ORRERY ]] || {
  echo "stories: no program: build it (scripts/quickstart), or name it in ORRERY" >&2
  exit 2
}
command -v jq >/dev/null || {
  echo "stories: jq is not installed (scripts/setup installs it)" >&2
  exit 2
}

results=$(mktemp -d)
documents=() # of the runs, as jq reads them
names=
broken=0

end() {
  local status=$?
  rm -rf "$results"
  ((status)) || status=$broken
  exit "$status"
}
trap end EXIT

# story TEXT...: what happens, a line each.
story() {
  printf '%s\n' "$@" '' "\$ cd examples/stories/$(basename "$PWD")"
}

# run NAME ARGUMENT...: shows and runs `orrery ARGUMENT...`. Later figures and promises call what it
# printed with `-o json` $NAME; of a simulation that is its summary, with the rows of jobs-POLICY.csv in
# `jobs`, by policy and by the name of the job.
run() {
  local name=$1
  shift
  if [[ " $* " == *" simulate "* ]]; then
    show "$@" --out "$name"
    "$ORRERY" "$@" --out "$results/$name" >/dev/null
    jq '.jobs = {}' "$results/$name/summary.json" >"$results/$name.json"
    local table policy
    for table in "$results/$name"/jobs-*.csv; do
      policy=$(basename "$table" .csv)
      jq --arg policy "${policy#jobs-}" --rawfile table "$table" -L "$stories" \
        'include "story"; .jobs[$policy] = ($table | rows)' "$results/$name.json" >"$results/next"
      mv "$results/next" "$results/$name.json"
    done
  else
    show "$@" -o json ">$name.json"
    "$ORRERY" "$@" -o json >"$results/$name.json"
  fi
  documents+=(--slurpfile "$name" "$results/$name.json")
  names+="\$$name[0] as \$$name | "
}

# show ARGUMENT...: the command as a user would type it, with results beside the input.
show() {
  local word line='$ orrery'
  for word in "${@//"$results/"/}"; do
    [[ $word =~ ^'>'?[A-Za-z0-9_./:,=@%+-]+$ ]] || word="'$word'"
    line+=" $word"
  done
  printf '%s\n' "$line"
}

# value EXPRESSION: what jq makes of the runs, with the functions of story.jq.
value() {
  jq -n -r -L "$stories" "${documents[@]}" "include \"story\"; $names $1"
}

# figure LABEL EXPRESSION: a figure that matters to the story.
figure() {
  printf '  %-58s %s\n' "$1" "$(value "$2")"
}

# promise TEXT EXPRESSION: what must be true of the runs.
promise() {
  if [[ $(value "$2") == true ]]; then
    printf 'kept: %s\n' "$1"
  else
    printf 'BROKEN: %s\n' "$1"
    broken=1
  fi
}
