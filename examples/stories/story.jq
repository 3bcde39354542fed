# What the stories ask of the documents of `orrery`.

# The gangs that `orrery schedule` starts of a job.
def gangs($job): [.started[] | select(.job == $job) | .gangs[]];

# The type that a role of a job has, such as "nvidia-h100-sxm5-80g".
def type_of($job; $role): [gangs($job)[] | select(.role == $role) | .type] | unique | join(" and ");

# What `orrery simulate` says of a policy.
def policy($name): .policies[] | select(.policy == $name);

# Rounded to so many digits after the point.
def digits($n): . * pow(10; $n) | round / pow(10; $n);

# A table of jobs with commas between columns: its rows by the name of the job, numbers as numbers.
def rows:
  split("\n") | map(select(. != "") | split(",")) | .[0] as $columns | .[1:] |
  map([$columns, map(tonumber? // .)] | transpose | map({key: .[0], value: .[1]}) | from_entries |
    {key: .job, value: .}) | from_entries;
