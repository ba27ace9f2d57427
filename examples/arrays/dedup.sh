#!/bin/sh
# The job after the array: makes one corpus from the work folders of all tasks of clean.sh, on one machine.
#
#     dedup.sh LIST FILES_PER_TASK WORK --output CORPUS [MORE OPTIONS OF c4pipe dedup]
#
# LIST, FILES_PER_TASK and WORK are those of clean.sh. docs/batch_systems.md shows how to submit it.
#
#SBATCH --job-name=dedup
#SBATCH --output=%x-%j.log
#SBATCH --open-mode=append
#SBATCH --cpus-per-task=16
#SBATCH --mem-per-cpu=2G
#SBATCH --time=1-00:00:00
#SBATCH --requeue
set -eu

list=$1 files_per_task=$2 work=$3
shift 3

case $work in
*://*) echo "$work is in a store: whether each task is complete is not checked here; look at the state of the array" >&2 ;;
esac

# Each file of a slice is in the task's folder: as a work file, or as a note that it could not be downloaded.
files=$(grep -c '' "$list")
index=0
incomplete=
while [ $((index * files_per_task)) -lt "$files" ]; do
    folder=$work/$(printf %05d "$index")
    expected=$((files - index * files_per_task))
    [ "$expected" -le "$files_per_task" ] || expected=$files_per_task
    case $folder in
    *://*) cleaned=$expected ;;
    *) cleaned=$(find "$folder/" -maxdepth 1 ! -name '.*' '(' -name '*.parquet' -o -name '*.missing.json' ')' 2>/dev/null | grep -c /) || true ;;
    esac
    if [ "$cleaned" -ne "$expected" ]; then
        echo "task $index: $folder has $cleaned of $expected files" >&2
        incomplete=$incomplete,$index
    fi
    set -- "$@" "$folder"
    index=$((index + 1))
done
if [ -n "$incomplete" ]; then
    echo "no corpus was written: run these tasks again, in Slurm with --array=${incomplete#,}" >&2
    exit 1
fi

exec c4pipe dedup "$@"
