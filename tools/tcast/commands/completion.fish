# Completes the commands, options and values of tcast in fish. The program itself knows them.
function __tcast_candidates
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    set -l current (commandline -ct)
    $program __complete $words "$current" 2>/dev/null
end

function __tcast_has_candidates
    test (count (__tcast_candidates)) -gt 0
end

complete -c tcast -n __tcast_has_candidates -f -a '(__tcast_candidates)'
